#include "views/widgets/zoomed_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "views/text/format.h"

namespace retrograd::views {

ZoomedPlot::ZoomedPlot(Theme* theme, int headroom, QWidget* parent)
    : QWidget(parent), theme_(theme), headroom_(headroom) {
  setFocusPolicy(Qt::StrongFocus);
}

void ZoomedPlot::setCurrent(std::optional<std::size_t> position) {
  if (position && *position >= count()) position.reset();
  if (position == current_) return;
  current_ = position;
  update();
}

QRect ZoomedPlot::plot() const {
  const int axis = empty() ? 0 : fontMetrics().horizontalAdvance(bytesText(topBytes())) + 8;
  return rect().adjusted(6 + axis, fontMetrics().height() + headroom_, -8, -fontMetrics().height() - 6);
}

double ZoomedPlot::placeOf(double x) const {
  return begin_ + (x - plot().left()) / std::max(1, plot().width()) * (end_ - begin_);
}

double ZoomedPlot::xAt(double place) const {
  return plot().left() + (place - begin_) / (end_ - begin_) * plot().width();
}

double ZoomedPlot::yOf(std::int64_t bytes, const QRect& area) const {
  return area.bottom() - static_cast<double>(bytes) / static_cast<double>(topBytes()) * (area.height() - 1);
}

std::pair<std::size_t, std::size_t> ZoomedPlot::range() const {
  if (empty()) return {0, 0};
  return {static_cast<std::size_t>(begin_), std::min(count(), static_cast<std::size_t>(std::ceil(end_)))};
}

std::optional<std::size_t> ZoomedPlot::positionAt(const QPointF& point) const {
  const auto area = plot();
  if (empty() || area.width() <= 0 || point.x() < area.left() || point.x() >= area.left() + area.width())
    return std::nullopt;
  return std::min(count() - 1, static_cast<std::size_t>(std::max(0.0, placeOf(point.x()))));
}

void ZoomedPlot::resetRange() {
  begin_ = 0;
  end_ = empty() ? 1 : static_cast<double>(count());
  if (current_ && *current_ >= count()) current_.reset();
}

void ZoomedPlot::zoomTo(double begin, double end) {
  if (empty()) return;
  const auto all = static_cast<double>(count());
  const double wide = std::clamp(end - begin, std::min(2.0, all), all);
  begin_ = std::clamp((begin + end - wide) / 2, 0.0, all - wide);
  end_ = begin_ + wide;
  rangeChanged();
  update();
}

void ZoomedPlot::zoomBy(double factor, double around) {
  zoomTo(around - (around - begin_) * factor, around + (end_ - around) * factor);
}

void ZoomedPlot::pick(std::size_t position) {
  setCurrent(position);
  // What is chosen by key comes into sight.
  if (const auto at = static_cast<double>(position); at < begin_ || at >= end_)
    zoomTo(at - (end_ - begin_) / 2, at + (end_ - begin_) / 2);
  Q_EMIT picked(position);
}

QColor ZoomedPlot::softer(const QColor& color, const QColor& paper) {
  constexpr double share = 0.55;
  const auto part = [](int a, int b) { return static_cast<int>(a * share + b * (1 - share)); };
  return {part(color.red(), paper.red()), part(color.green(), paper.green()), part(color.blue(), paper.blue())};
}

std::size_t ZoomedPlot::ticksApart() const {
  const double room = 1.6 * fontMetrics().horizontalAdvance(QString::number(count())) + 12;
  const double each = plot().width() / (end_ - begin_);
  std::size_t apart = 1;
  for (int i = 0; static_cast<double>(apart) * each < room && apart < count(); ++i)
    apart = i % 3 == 1 ? apart / 2 * 5 : apart * 2;
  return apart;
}

/// Steps are powers of two, so that all marks are round numbers of B, KiB, MiB.
void ZoomedPlot::paintBytes(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const int line = fontMetrics().height();
  const auto top = topBytes();
  std::int64_t step = 1;
  while (top / step > std::clamp(area.height() / (2 * line), 1, 5)) step *= 2;
  for (std::int64_t bytes = 0; bytes <= top; bytes += step) {
    const int y = static_cast<int>(yOf(bytes, area));
    painter.fillRect(QRect(area.left() - 3, y, area.width() + 3, 1), colors.border);
    painter.setPen(colors.gutterText);
    painter.drawText(QRect(0, y - line / 2, area.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter,
                     bytesText(bytes));
  }
}

void ZoomedPlot::paintTick(QPainter& painter, const QRect& area, std::size_t position, const QString& text) const {
  const auto& colors = theme_->colors();
  const int x = xOf(position);
  painter.fillRect(QRect(x, area.bottom() + 1, 1, 4), colors.gutterText);
  painter.setPen(colors.gutterText);
  painter.drawText(belowAxis(x, text, area), Qt::AlignLeft | Qt::TextDontClip, text);
}

QRect ZoomedPlot::belowAxis(int x, const QString& text, const QRect& area) const {
  const int wide = fontMetrics().horizontalAdvance(text);
  return {std::clamp(x - wide / 2, 2, std::max(2, width() - wide - 2)), area.bottom() + 5, wide,
          fontMetrics().height()};
}

void ZoomedPlot::paintUpright(QPainter& painter, const QRect& area, int x, const QColor& color, Qt::PenStyle style,
                              qreal width) const {
  painter.setPen(QPen(color, width, style));
  painter.drawLine(QPointF(x + 0.5, area.top() - 2), QPointF(x + 0.5, area.bottom() + 2));
}

void ZoomedPlot::paintCurve(QPainter& painter, const QPolygonF& line, Qt::PenStyle style) const {
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme_->colors().background, 4));
  painter.drawPolyline(line);
  painter.setPen(QPen(theme_->colors().text, 2, style));
  painter.drawPolyline(line);
}

QRect ZoomedPlot::flagPlace(int x, const QString& text) const {
  const int wide = fontMetrics().horizontalAdvance(text);
  return {x + 8 + wide < rect().right() ? x + 8 : x - 8 - wide, 0, wide, fontMetrics().height()};
}

void ZoomedPlot::paintFlag(QPainter& painter, const QRect& area, int x, const QString& text,
                           const QColor& color) const {
  painter.setBrush(color);
  painter.setPen(Qt::NoPen);
  painter.drawPolygon(
      QPolygonF{{QPointF(x + 0.5, area.top()), QPointF(x - 4, area.top() - 6), QPointF(x + 5, area.top() - 6)}});
  painter.setPen(color);
  painter.drawText(flagPlace(x, text), Qt::AlignLeft | Qt::TextDontClip, text);
}

void ZoomedPlot::paintChoice(QPainter& painter, const QRect& area) const {
  if (!dragFrom_ || !dragTo_) return;
  auto shade = palette().color(QPalette::Highlight);
  shade.setAlphaF(0.25F);
  painter.fillRect(QRectF(QPointF(xAt(std::min(*dragFrom_, *dragTo_)), area.top()),
                          QPointF(xAt(std::max(*dragFrom_, *dragTo_)), area.bottom())),
                   shade);
}

void ZoomedPlot::paintFocus(QPainter& painter) const {
  if (!hasFocus()) return;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void ZoomedPlot::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  const auto position = positionAt(event->position());
  if (position && event->modifiers() & Qt::ShiftModifier) {
    dragFrom_ = dragTo_ = placeOf(event->position().x());
    return update();
  }
  if (position) pick(*position);
}

void ZoomedPlot::mouseMoveEvent(QMouseEvent* event) {
  if (dragFrom_) {
    dragTo_ = placeOf(event->position().x());
    return update();
  }
  const auto position = positionAt(event->position());
  if (position && position != current_ && event->buttons() & Qt::LeftButton) pick(*position);
}

void ZoomedPlot::mouseReleaseEvent(QMouseEvent* event) {
  if (!dragFrom_) return QWidget::mouseReleaseEvent(event);
  const auto from = *std::exchange(dragFrom_, {}), to = *std::exchange(dragTo_, {});
  if (std::abs(xAt(from) - xAt(to)) > 4) return zoomTo(std::min(from, to), std::max(from, to));
  update();
}

void ZoomedPlot::wheelEvent(QWheelEvent* event) {
  if (empty()) return QWidget::wheelEvent(event);
  const auto delta = event->angleDelta();
  const double steps = (delta.y() != 0 ? delta.y() : delta.x()) / 120.0;
  if (event->modifiers() & Qt::ShiftModifier || delta.y() == 0) {
    const double by = std::clamp(-steps * (end_ - begin_) / 8, -begin_, static_cast<double>(count()) - end_);
    zoomTo(begin_ + by, end_ + by);
  } else {
    zoomBy(std::pow(0.8, steps), std::clamp(placeOf(event->position().x()), begin_, end_));
  }
  event->accept();
}

void ZoomedPlot::keyPressEvent(QKeyEvent* event) {
  if (empty()) return QWidget::keyPressEvent(event);
  const auto last = count() - 1;
  const auto from = current_.value_or(firstByKey());
  const auto step = event->modifiers() & Qt::ControlModifier ? std::max<std::size_t>(1, count() / 10) : 1;
  switch (event->key()) {
    case Qt::Key_Left: return pick(from > step ? from - step : 0);
    case Qt::Key_Right: return pick(std::min(last, current_ ? from + step : from));
    case Qt::Key_Home: return pick(0);
    case Qt::Key_End: return pick(last);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(0.5, std::clamp(static_cast<double>(from), begin_, end_));
    case Qt::Key_Minus: return zoomBy(2, std::clamp(static_cast<double>(from), begin_, end_));
    case Qt::Key_0: return zoomTo(0, static_cast<double>(count()));
    default: QWidget::keyPressEvent(event);
  }
}

}  // namespace retrograd::views
