#include "views/canvases/histogram_view.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/text/format.h"

namespace retrograd::views {

HistogramView::HistogramView(Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setAccessibleName(tr("Histogram"));
  connect(theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void HistogramView::set(std::vector<std::int64_t> counts, const TensorStatistics& statistics) {
  counts_ = std::move(counts);
  statistics_ = statistics;
  setAccessibleDescription(
      counts_.empty() ? QString()
                      : tr("From %1 to %2, mean %3")
                            .arg(numberText(statistics.min), numberText(statistics.max), numberText(statistics.mean)));
  setVisible(!counts_.empty());
  update();
}

void HistogramView::paintEvent(QPaintEvent*) {
  if (counts_.empty()) return;
  QPainter painter(this);
  const auto& colors = theme_->colors();
  const auto area = plot();
  const auto most = std::max<std::int64_t>(1, *std::ranges::max_element(counts_));
  const double width = static_cast<double>(area.width()) / static_cast<double>(counts_.size());
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    // At least two pixels: a single outlier among millions still shows.
    const double height = std::max(2.0, area.height() * static_cast<double>(counts_[i]) / static_cast<double>(most));
    painter.fillRect(QRectF(area.left() + width * static_cast<double>(i), area.bottom() - height + 1,
                            std::max(1.0, width - 1), height),
                     colors.plot);
  }
  painter.fillRect(QRect(area.left(), area.bottom() + 1, area.width(), 1), colors.border);
  const QRect labels(area.left(), area.bottom() + 2, area.width(), fontMetrics().height());
  painter.setPen(colors.comment);
  const auto least = numberText(statistics_.min), greatest = numberText(statistics_.max);
  painter.drawText(labels, Qt::AlignRight | Qt::AlignVCenter, greatest);
  if (fontMetrics().horizontalAdvance(least + QStringLiteral("  ") + greatest) <= labels.width())
    painter.drawText(labels, Qt::AlignLeft | Qt::AlignVCenter, least);
  if (statistics_.min < 0 && statistics_.max > 0) {
    // Halves: the whole range of the doubles overflows.
    const double share = -statistics_.min / 2 / (statistics_.max / 2 - statistics_.min / 2);
    const int zero = area.left() + static_cast<int>(area.width() * share);
    painter.setPen(QPen(colors.comment, 1, Qt::DotLine));
    painter.drawLine(zero, area.top(), zero, area.bottom());
  }
  if (statistics_.nan + statistics_.inf == 0) return;
  painter.setPen(colors.bad);
  painter.drawText(area.adjusted(4, 0, -4, 0), Qt::AlignRight | Qt::AlignTop,
                   tr("! %1 NaN, %2 Inf").arg(statistics_.nan).arg(statistics_.inf));
}

bool HistogramView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && !counts_.empty()) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto area = plot();
    const auto cells = static_cast<double>(counts_.size());
    const auto cell =
        std::clamp(static_cast<double>(help->x() - area.left()) / std::max(1, area.width()) * cells, 0.0, cells - 1);
    const auto i = static_cast<std::size_t>(cell);
    const auto edge = [&](std::size_t at) {
      return numberText(std::lerp(statistics_.min, statistics_.max, static_cast<double>(at) / cells));
    };
    QToolTip::showText(help->globalPos(), tr("%1 elements from %2 to %3").arg(counts_[i]).arg(edge(i), edge(i + 1)),
                       this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace retrograd::views
