#include "views/numbers/gradient_flow_chart.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <limits>

#include "views/text/format.h"
#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

constexpr double ratioMark = 2.5;  ///< half the width of a ratio's mark
constexpr double leastPlace = 4;   ///< pixels for two columns and a mark
constexpr int legendMark = 28;     ///< a mark of the legend, with the gaps around it

/// What is drawn of bars that share a place.
struct Place {
  double value = 0, gradient = 0;                                    ///< the greatest
  double least = std::numeric_limits<double>::infinity(), most = 0;  ///< of the ratios
};

Place placeOf(std::span<const GradientFlowChart::Bar> bars) {
  Place place;
  for (const auto& bar : bars) {
    if (!bar.isKnown) continue;
    place.value = std::max(place.value, bar.value);
    place.gradient = std::max(place.gradient, bar.gradient);
    if (!(bar.ratio() > 0) || !std::isfinite(bar.ratio())) continue;
    place.least = std::min(place.least, bar.ratio());
    place.most = std::max(place.most, bar.ratio());
  }
  return place;
}

}  // namespace

GradientFlowChart::GradientFlowChart(Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setObjectName(QStringLiteral("gradient-flow-chart"));
  setAccessibleName(tr("Norms of parameters and of their gradients by layer"));
  setMinimumHeight(90);
  setMinimumWidth(plot().left() + 3 * legendMark +
                  fontMetrics().horizontalAdvance(legendText(0) + legendText(1) + legendText(2)));
  connect(theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

QString GradientFlowChart::legendText(int part) {
  return part == 0 ? tr("value") : part == 1 ? tr("gradient") : tr("ratio");
}

void GradientFlowChart::show(std::vector<Bar> bars, const QString& reason) {
  bars_ = std::move(bars);
  const bool isKnown = std::ranges::any_of(bars_, [](const Bar& bar) { return bar.isKnown; });
  reason_ = isKnown ? QString() : reason;
  setAccessibleDescription(reason_);
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const auto& bar : bars_)
    for (const double number : {bar.value, bar.gradient, bar.ratio()})
      if (bar.isKnown && number > 0 && std::isfinite(number)) {
        least = std::min(least, number);
        most = std::max(most, number);
      }
  least_ = most > 0 ? std::floor(std::log10(least)) : 0;
  most_ = most > 0 ? std::ceil(std::log10(most)) : 0;
  if (least_ == most_) most_ = least_ + 1;
  update();
}

void GradientFlowChart::setCurrent(int bar) {
  current_ = bar;
  update();
}

QRect GradientFlowChart::plot() const {
  return rect().adjusted(fontMetrics().horizontalAdvance(QStringLiteral("1e-10")) + 8, fontMetrics().height() + 6, -8,
                         -6);
}

double GradientFlowChart::shareOf(double number) const {
  return number > 0 ? std::clamp((std::log10(number) - least_) / (most_ - least_), 0.0, 1.0) : 0;
}

std::size_t GradientFlowChart::barsInAPlace() const {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(leastPlace * static_cast<double>(bars_.size()) /
                                                                     std::max(1, plot().width()))));
}

std::span<const GradientFlowChart::Bar> GradientFlowChart::inPlaceOf(std::size_t bar) const {
  const auto all = std::span(bars_);
  const auto each = barsInAPlace(), first = bar / each * each;
  return all.subspan(first, std::min(each, all.size() - first));
}

QRectF GradientFlowChart::barRect(std::size_t bar) const {
  const auto area = plot();
  const auto each = barsInAPlace();
  const auto places = (bars_.size() + each - 1) / each, place = bar / each;
  const double width = static_cast<double>(area.width()) / static_cast<double>(places);
  return {area.left() + width * static_cast<double>(place), static_cast<double>(area.top()), width,
          static_cast<double>(area.height())};
}

int GradientFlowChart::barAt(const QPoint& at) const {
  const auto area = plot();
  if (bars_.empty() || !area.contains(at)) return -1;
  const auto place = static_cast<std::size_t>((at.x() - area.left()) / barRect(0).width());
  const auto bars = inPlaceOf(std::min(place * barsInAPlace(), bars_.size() - 1));
  return static_cast<int>(&*std::ranges::max_element(bars, [](const Bar& a, const Bar& b) {
    return a.gradient < b.gradient;
  }) - bars_.data());
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
    painter.drawText(QRect(0, y - 8, area.left() - 4, 16), Qt::AlignRight | Qt::AlignVCenter,
                     QStringLiteral("1e%1").arg(power, 0, 'f', 0));
    painter.fillRect(QRect(area.left(), y, area.width(), 1), colors.border);
  }
  const auto mark = [&](const QPointF& at) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colors.background, 1));
    painter.setBrush(colors.originMark);
    painter.drawEllipse(at, ratioMark, ratioMark);
    painter.setRenderHint(QPainter::Antialiasing, false);  // bars of a pixel keep their colour
  };
  for (std::size_t i = 0; i < bars_.size(); i += barsInAPlace()) {
    const auto room = barRect(i);
    const double left = room.left(), width = room.width();
    if (current_ >= 0 && barRect(static_cast<std::size_t>(current_)) == room) painter.fillRect(room, colors.selected);
    const auto draw = [&](double at, double number, const QColor& color) {
      const double h = shareOf(number) * area.height();
      painter.fillRect(QRectF(left + width * at, area.bottom() - h, std::max(width * 0.38, 1.0), h), color);
    };
    const auto place = placeOf(inPlaceOf(i));
    draw(0.1, place.value, colors.plot);
    draw(0.5, place.gradient, colors.derivedMark);
    // Marks, not a line: parameters next to each other have nothing to do with each other, and a zero has no place on
    // this axis.
    if (place.most > 0) mark(QPointF(left + width / 2, area.bottom() - shareOf(place.most) * area.height()));
    if (place.most > place.least) mark(QPointF(left + width / 2, area.bottom() - shareOf(place.least) * area.height()));
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

QString GradientFlowChart::tipOf(std::size_t at) const {
  const auto& bar = bars_[at];
  auto lines = QStringList(bar.name);
  if (bar.isKnown) lines << tr("value %1").arg(numberText(bar.value));
  if (bar.isKnown && !bar.hasGradient) lines << tr("no gradient");
  if (bar.isKnown && bar.hasGradient)
    lines << tr("gradient %1").arg(numberText(bar.gradient)) << tr("ratio %1").arg(numberText(bar.ratio()));
  if (const auto bars = inPlaceOf(at).size(); bars > 1)
    lines << tr("the greatest gradient of the %1 bars here").arg(bars);
  return lines.join(QLatin1Char('\n'));
}

bool GradientFlowChart::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const int at = barAt(help->pos());
    if (at < 0) return QToolTip::hideText(), true;
    QToolTip::showText(help->globalPos(), tipOf(static_cast<std::size_t>(at)), this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace retrograd::views
