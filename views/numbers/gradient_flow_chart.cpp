#include "views/numbers/gradient_flow_chart.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/text/format.h"
#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

constexpr double ratioMark = 2.5;  ///< half the width of a ratio's mark
constexpr int legendMark = 28;     ///< a mark of the legend, with the gaps around it

}  // namespace

GradientFlowChart::GradientFlowChart(Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setObjectName(QStringLiteral("gradient-flow-chart"));
  setAccessibleName(tr("Norms of parameters and of their gradients by layer"));
  setMinimumHeight(90);
  setMinimumWidth(plot().left() + 3 * legendMark + fontMetrics().horizontalAdvance(legendText(0) + legendText(1) + legendText(2)));
  connect(theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

QString GradientFlowChart::legendText(int part) { return part == 0 ? tr("value") : part == 1 ? tr("gradient") : tr("ratio"); }

void GradientFlowChart::show(std::vector<Bar> bars, const QString& reason) {
  bars_ = std::move(bars);
  const bool isKnown = std::any_of(bars_.begin(), bars_.end(), [](const Bar& bar) { return bar.isKnown; });
  reason_ = isKnown ? QString() : reason;
  setAccessibleDescription(reason_);
  least_ = 300;
  most_ = -300;
  for (const auto& bar : bars_)
    for (const double number : {bar.value, bar.gradient, bar.ratio()})
      if (bar.isKnown && number > 0 && std::isfinite(number)) {
        least_ = std::min(least_, std::floor(std::log10(number)));
        most_ = std::max(most_, std::ceil(std::log10(number)));
      }
  if (least_ > most_) least_ = most_ = 0;  // nothing has run
  if (least_ == most_) most_ = least_ + 1;
  update();
}

void GradientFlowChart::setCurrent(int bar) {
  current_ = bar;
  update();
}

QRect GradientFlowChart::plot() const {
  return rect().adjusted(fontMetrics().horizontalAdvance(QStringLiteral("1e-10")) + 8, fontMetrics().height() + 6, -8, -6);
}

double GradientFlowChart::shareOf(double number) const { return number > 0 ? std::clamp((std::log10(number) - least_) / (most_ - least_), 0.0, 1.0) : 0; }

QRectF GradientFlowChart::barRect(std::size_t bar) const {
  const auto area = plot();
  const double width = static_cast<double>(area.width()) / static_cast<double>(bars_.size());
  return {area.left() + width * static_cast<double>(bar), static_cast<double>(area.top()), width, static_cast<double>(area.height())};
}

int GradientFlowChart::barAt(const QPoint& at) const {
  const auto area = plot();
  if (bars_.empty() || !area.contains(at)) return -1;
  return std::min(static_cast<int>(static_cast<double>(at.x() - area.left()) * static_cast<double>(bars_.size()) / area.width()),
                  static_cast<int>(bars_.size()) - 1);
}

void GradientFlowChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const auto& colors = theme_->colors();
  painter.fillRect(rect(), colors.background);
  if (bars_.empty()) return;
  if (!reason_.isEmpty()) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(tokens::wide, 0, -tokens::wide, 0), Qt::AlignCenter | Qt::TextWordWrap, reason_);
    return;
  }
  const auto area = plot();
  painter.setPen(colors.gutterText);
  for (double power = least_; power <= most_ + 0.5; power += std::max(1.0, std::ceil((most_ - least_) / 5))) {
    const int y = area.bottom() - static_cast<int>((power - least_) / (most_ - least_) * area.height());
    painter.drawText(QRect(0, y - 8, area.left() - 4, 16), Qt::AlignRight | Qt::AlignVCenter, QStringLiteral("1e%1").arg(power, 0, 'f', 0));
    painter.fillRect(QRect(area.left(), y, area.width(), 1), colors.border);
  }
  painter.setRenderHint(QPainter::Antialiasing);
  const auto mark = [&](const QPointF& at) {
    painter.setPen(QPen(colors.background, 1));
    painter.setBrush(colors.originMark);
    painter.drawEllipse(at, ratioMark, ratioMark);
  };
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const auto& bar = bars_[i];
    const auto room = barRect(i);
    const double left = room.left(), width = room.width();
    if (static_cast<int>(i) == current_) painter.fillRect(room, colors.selected);
    if (!bar.isKnown) continue;
    const auto draw = [&](double at, double number, const QColor& color) {
      const double h = shareOf(number) * area.height();
      painter.fillRect(QRectF(left + width * at, area.bottom() - h, std::max(width * 0.38, 1.0), h), color);
    };
    draw(0.1, bar.value, colors.plot);
    if (bar.hasGradient) draw(0.5, bar.gradient, colors.derivedMark);
    // A mark, not a line: parameters next to each other have nothing to do with each other, and a zero has no place on this axis.
    if (bar.ratio() > 0 && std::isfinite(bar.ratio())) mark(QPointF(left + width / 2, area.bottom() - shareOf(bar.ratio()) * area.height()));
  }
  // The legend: squares and a mark with their names.
  int x = area.left();
  const auto legend = [&](const QColor& color, const QString& text) {
    if (color.isValid()) painter.fillRect(QRect(x, 5, 10, 10), color);
    else mark(QPointF(x + 6, 10));
    painter.setPen(colors.text);
    painter.drawText(x + 16, 4 + fontMetrics().ascent(), text);
    x += legendMark + fontMetrics().horizontalAdvance(text);
  };
  legend(colors.plot, legendText(0));
  legend(colors.derivedMark, legendText(1));
  legend({}, legendText(2));
}

void GradientFlowChart::mousePressEvent(QMouseEvent* event) {
  if (const int bar = barAt(event->pos()); bar >= 0) Q_EMIT chosen(bar);
}

bool GradientFlowChart::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const int at = barAt(help->pos());
    if (at < 0) return QToolTip::hideText(), true;
    const auto& bar = bars_[static_cast<std::size_t>(at)];
    QToolTip::showText(help->globalPos(),
                       !bar.isKnown ? bar.name
                       : !bar.hasGradient
                           ? tr("%1\nvalue %2\nno gradient").arg(bar.name, numberText(bar.value))
                           : tr("%1\nvalue %2\ngradient %3\nratio %4").arg(bar.name, numberText(bar.value), numberText(bar.gradient), numberText(bar.ratio())),
                       this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace retrograd::views
