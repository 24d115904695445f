#include "views/canvases/memory_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

/// A power of two, so that all marks of an axis up to `most` are round numbers of B, KiB, MiB; at most `marks` of them
/// beyond 0.
std::int64_t byteStep(std::int64_t most, int marks) {
  std::int64_t step = 1;
  while (most / step > marks) step *= 2;
  return step;
}

}  // namespace

MemoryView::MemoryView(Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setObjectName(QStringLiteral("memory-timeline"));
  setAccessibleName(tr("Memory timeline"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setMinimumHeight(70);
  connect(theme_, &Theme::changed, this, [this] {
    stack_ = {};
    update();
  });
}

QColor MemoryView::fillOf(const Colors& colors, MemoryUse use) {
  constexpr double share = 0.55;
  const auto full = colorOf(colors, use), paper = colors.background;
  const auto part = [](int a, int b) { return static_cast<int>(a * share + b * (1 - share)); };
  return {part(full.red(), paper.red()), part(full.green(), paper.green()), part(full.blue(), paper.blue())};
}

QColor MemoryView::colorOf(const Colors& colors, MemoryUse use) { return colors.memory[static_cast<std::size_t>(use)]; }

void MemoryView::set(std::shared_ptr<const MemoryTimeline> timeline, std::size_t forwardSize,
                     std::function<BoundSymbolId(std::size_t)> opAt) {
  timeline_ = std::move(timeline);
  other_ = nullptr;
  opAt_ = std::move(opAt);
  stack_ = {};
  forwardSize_ = forwardSize;
  hover_.reset();
  begin_ = 0;
  end_ = empty() ? 1 : static_cast<double>(count());
  if (empty() || (current_ && *current_ >= count())) current_.reset();
  setAccessibleDescription(empty() ? QString()
                                   : tr("%1 ops, peak %2 after %3")
                                         .arg(count())
                                         .arg(bytesText(timeline_->peakBytes), idAt(timeline_->peakPosition)));
  update();
}

void MemoryView::setOther(std::shared_ptr<const MemoryTimeline> timeline, std::size_t forwardSize) {
  other_ = timeline && !timeline->liveBytes.empty() ? std::move(timeline) : nullptr;
  otherForward_ = forwardSize;
  stack_ = {};
  update();
}

std::int64_t MemoryView::topBytes() const {
  return std::max<std::int64_t>({1, timeline_->peakBytes, other_ ? other_->peakBytes : 0});
}

double MemoryView::yOf(std::int64_t bytes, const QRect& area) const {
  return area.bottom() - static_cast<double>(bytes) / static_cast<double>(topBytes()) * (area.height() - 1);
}

void MemoryView::setExecution(std::size_t position) {
  if (position == execution_) return;
  execution_ = position;
  update();
}

void MemoryView::setCurrent(std::optional<std::size_t> position) {
  if (position && (empty() || *position >= count())) position.reset();
  if (position == current_) return;
  current_ = position;
  update();
}

QRect MemoryView::plot() const {
  const int axis = empty() ? 0 : fontMetrics().horizontalAdvance(bytesText(topBytes())) + 8;
  return rect().adjusted(6 + axis, fontMetrics().height() + 4, -8, -fontMetrics().height() - 6);
}

double MemoryView::placeOf(double x) const {
  return begin_ + (x - plot().left()) / std::max(1, plot().width()) * (end_ - begin_);
}

double MemoryView::xAt(double place) const {
  return plot().left() + (place - begin_) / (end_ - begin_) * plot().width();
}

std::pair<std::size_t, std::size_t> MemoryView::range() const {
  if (empty()) return {0, 0};
  return {static_cast<std::size_t>(begin_), std::min(count(), static_cast<std::size_t>(std::ceil(end_)))};
}

void MemoryView::zoomTo(double begin, double end) {
  if (empty()) return;
  const auto all = static_cast<double>(count());
  const double wide = std::clamp(end - begin, std::min(2.0, all), all);
  begin_ = std::clamp((begin + end - wide) / 2, 0.0, all - wide);
  end_ = begin_ + wide;
  stack_ = {};
  update();
}

void MemoryView::zoomBy(double factor, double around) {
  if (!empty()) zoomTo(around - (around - begin_) * factor, around + (end_ - around) * factor);
}

std::optional<std::size_t> MemoryView::positionAt(const QPointF& point) const {
  const auto area = plot();
  if (empty() || area.width() <= 0 || point.x() < area.left() || point.x() >= area.left() + area.width())
    return std::nullopt;
  return std::min(count() - 1, static_cast<std::size_t>(std::max(0.0, placeOf(point.x()))));
}

int MemoryView::xOf(std::size_t position) const { return static_cast<int>(xAt(static_cast<double>(position) + 0.5)); }

void MemoryView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const auto& colors = theme_->colors();
  painter.fillRect(rect(), colors.background);
  if (empty()) {
    painter.setPen(colors.gutterText);
    painter.drawText(rect().adjusted(12, 0, -12, 0), Qt::AlignCenter | Qt::TextWordWrap,
                     tr("Open a model with a backward to see its live memory after each op, and what it is for"));
    return;
  }
  const auto area = plot();
  if (area.width() < 2 || area.height() < 2) return;
  painter.drawPixmap(QPoint(0, 0), stack(area));
  painter.save();
  painter.setClipRect(area.adjusted(-1, -area.top(), 1, rect().bottom() - area.bottom()));
  painter.fillRect(QRect(area.left(), area.bottom() + 1, area.width(), 1), colors.border);
  paintOther(painter, area);
  paintMarks(painter, area);
  paintExecution(painter, area);
  paintCursor(painter, area);
  if (dragFrom_ && dragTo_) {
    auto shade = palette().color(QPalette::Highlight);
    shade.setAlphaF(0.25f);
    painter.fillRect(QRectF(QPointF(xAt(std::min(*dragFrom_, *dragTo_)), area.top()),
                            QPointF(xAt(std::max(*dragFrom_, *dragTo_)), area.bottom())),
                     shade);
  }
  painter.restore();
  if (!hasFocus()) return;
  painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

const QPixmap& MemoryView::stack(const QRect& area) {
  const auto ratio = devicePixelRatioF();
  if (stack_.isNull() || stack_.size() != size() * ratio) {
    stack_ = QPixmap(size() * ratio);
    stack_.setDevicePixelRatio(ratio);
    stack_.fill(Qt::transparent);
    QPainter painter(&stack_);
    painter.setFont(font());
    paintAxes(painter, area);
    paintStack(painter, area);
  }
  return stack_;
}

/// One column of pixels at a time, each as high as the highest op in it: a peak of one op among a million shows.
void MemoryView::paintStack(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const auto peak = static_cast<double>(topBytes());
  for (int column = 0; column < area.width(); ++column) {
    const auto at = [&](int x) {
      return static_cast<std::size_t>(begin_ + static_cast<double>(x) * (end_ - begin_) / area.width());
    };
    const auto begin = std::min(at(column), count() - 1), end = std::clamp(at(column + 1), begin + 1, count());
    auto highest = begin;
    for (auto i = begin; i < end; ++i)
      if (timeline_->total(i) > timeline_->total(highest)) highest = i;
    double below = 0;
    for (std::size_t use = 0; use < memoryUseCount; ++use) {
      const auto bytes = static_cast<double>(timeline_->liveBytes[highest][use]);
      if (bytes <= 0) continue;
      const int bottom = area.bottom() - static_cast<int>(below / peak * (area.height() - 1));
      below += bytes;
      const int top = area.bottom() - static_cast<int>(below / peak * (area.height() - 1));
      // The fill is soft, its upper edge in the full colour.
      painter.fillRect(QRect(area.left() + column, top, 1, std::max(1, bottom - top)),
                       fillOf(colors, static_cast<MemoryUse>(use)));
      painter.fillRect(QRect(area.left() + column, top, 1, 1), colorOf(colors, static_cast<MemoryUse>(use)));
    }
  }
}

/// Bytes at the left with lines behind the plot, positions in the run below.
void MemoryView::paintAxes(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const int line = fontMetrics().height();
  const auto peak = topBytes();
  const auto step = byteStep(peak, std::clamp(area.height() / (2 * line), 1, 5));
  for (std::int64_t bytes = 0; bytes <= peak; bytes += step) {
    const int y = static_cast<int>(yOf(bytes, area));
    painter.fillRect(QRect(area.left() - 3, y, area.width() + 3, 1), colors.border);
    painter.setPen(colors.gutterText);
    painter.drawText(QRect(0, y - line / 2, area.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter,
                     bytesText(bytes));
  }
  for (const auto& [position, text] : ticks()) {
    const int x = xOf(position);
    painter.fillRect(QRect(x, area.bottom() + 1, 1, 4), colors.gutterText);
    painter.setPen(colors.gutterText);
    painter.drawText(belowAxis(x, text, area), Qt::AlignLeft | Qt::TextDontClip, text);
  }
}

/// Below its place on the axis, but whole: near an edge it moves inwards.
QRect MemoryView::belowAxis(int x, const QString& text, const QRect& area) const {
  const int width = fontMetrics().horizontalAdvance(text);
  return {std::clamp(x - width / 2, 2, std::max(2, this->width() - width - 2)), area.bottom() + 5, width,
          fontMetrics().height()};
}

/// The op under the pointer, else the selected one, by the number that everything else knows it by.
void MemoryView::paintCursor(QPainter& painter, const QRect& area) const {
  const auto at = hover_ ? hover_ : current_;
  if (!at || *at >= count()) return;
  const auto& colors = theme_->colors();
  const auto id = cursorText();
  const QRect place = belowAxis(xOf(*at), id, area);
  painter.fillRect(place.adjusted(-4, 0, 4, 0), colors.text);
  painter.setPen(colors.background);
  painter.drawText(place, Qt::AlignLeft | Qt::TextDontClip, id);
}

QString MemoryView::cursorText() const {
  const auto at = hover_ ? hover_ : current_;
  return at && !empty() && *at < count() ? idAt(*at) : QString();
}

QString MemoryView::idAt(std::size_t position) const { return QStringLiteral("#%1").arg(opAt_(position).index); }

std::vector<std::pair<std::size_t, QString>> MemoryView::ticks() const {
  std::vector<std::pair<std::size_t, QString>> ticks;
  const auto area = plot();
  if (empty() || area.width() < 2) return ticks;
  // Every step that 1, 2, 5, 10... divides, as far apart as the last number needs. Steps are counted from 1, as the
  // position in the tool bar is.
  const double room = 1.6 * fontMetrics().horizontalAdvance(QString::number(count())) + 12;
  const double perOp = area.width() / (end_ - begin_);
  std::size_t apart = 1;
  for (int i = 0; static_cast<double>(apart) * perOp < room && apart < count(); ++i)
    apart = i % 3 == 1 ? apart / 2 * 5 : apart * 2;
  const auto [begin, end] = range();
  const auto first = static_cast<std::size_t>(std::ceil(begin_)) + 1;
  for (auto step = (first + apart - 1) / apart * apart; step <= end; step += apart)
    ticks.emplace_back(step - 1, QString::number(step));
  return ticks;
}

/// Where the run is, on the axis: the numbers of ops are below it. Over the lines of the selected op and the
/// border, which may be at the same place.
void MemoryView::paintExecution(QPainter& painter, const QRect& area) const {
  if (execution_ == 0 || execution_ > count()) return;
  const int x = xOf(execution_ - 1), foot = area.bottom() + 1;
  painter.setBrush(theme_->colors().execution);
  painter.setPen(QPen(theme_->colors().background, 1));
  painter.drawPolygon(QPolygonF{{QPointF(x + 0.5, foot - 10), QPointF(x - 5, foot), QPointF(x + 6, foot)}});
}

/// One point for each column of pixels, the highest of the ops in it.
void MemoryView::paintOther(QPainter& painter, const QRect& area) const {
  if (!other_) return;
  const auto all = other_->liveBytes.size();
  const auto placeInOther = [&](double place) {
    const auto here = static_cast<double>(forwardSize_), there = static_cast<double>(otherForward_);
    const auto hereRest = static_cast<double>(count()) - here, thereRest = static_cast<double>(all) - there;
    const double at = place < here ? place / std::max(here, 1.0) * there
                                   : there + (place - here) / std::max(hereRest, 1.0) * thereRest;
    return std::min(all - 1, static_cast<std::size_t>(std::max(0.0, at)));
  };
  QPolygonF line;
  for (int x = area.left(); x <= area.right(); ++x) {
    const auto begin = placeInOther(placeOf(x)), end = std::max(begin + 1, placeInOther(placeOf(x + 1)));
    std::int64_t highest = 0;
    for (auto i = begin; i < end; ++i) highest = std::max(highest, other_->total(i));
    line << QPointF(x + 0.5, yOf(highest, area));
  }
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme_->colors().background, 4));
  painter.drawPolyline(line);
  painter.setPen(QPen(theme_->colors().text, 2, Qt::DotLine));
  painter.drawPolyline(line);
}

void MemoryView::paintMarks(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const auto line = [&](int x, const QColor& color, Qt::PenStyle style, qreal width) {
    painter.setPen(QPen(color, width, style));
    painter.drawLine(QPointF(x + 0.5, area.top() - 2), QPointF(x + 0.5, area.bottom() + 2));
  };
  if (forwardSize_ > 0 && forwardSize_ < count()) {
    const int border = static_cast<int>(xAt(static_cast<double>(forwardSize_)));
    line(border, colors.text, Qt::DashLine, 1);
    painter.setPen(colors.comment);
    // On both sides of the border, above the plot; at the far end of a side where the peak's label has the place, and
    // left out where neither has room.
    const QRect label = peakLabel();
    const auto word = [&](const QString& text, std::initializer_list<int> lefts, int from, int to) {
      const int width = fontMetrics().horizontalAdvance(text);
      for (const int left : lefts) {
        const QRect place(left, 0, width, fontMetrics().height());
        if (left < from || left + width > to || place.adjusted(-6, 0, 6, 0).intersects(label)) continue;
        return painter.drawText(place, Qt::AlignLeft | Qt::TextDontClip, text);
      }
    };
    const QString before = tr("forward"), after = tr("backward");
    word(before, {border - 6 - fontMetrics().horizontalAdvance(before), area.left()}, area.left(), border);
    word(after, {border + 6, area.right() - fontMetrics().horizontalAdvance(after)}, border, rect().right());
  }
  // The execution mark points up from below, the peak's down from above: they differ by place and shape, not by colour.
  if (execution_ > 0 && execution_ <= count()) line(xOf(execution_ - 1), colors.execution, Qt::SolidLine, 2);
  const int peak = xOf(timeline_->peakPosition);
  painter.setBrush(colors.text);
  painter.setPen(Qt::NoPen);
  painter.drawPolygon(QPolygonF{
      {QPointF(peak + 0.5, area.top()), QPointF(peak - 4, area.top() - 6), QPointF(peak + 5, area.top() - 6)}});
  painter.setPen(colors.text);
  painter.drawText(peakLabel(), Qt::AlignLeft | Qt::TextDontClip, peakText());
  if (hover_ && hover_ != current_) line(xOf(*hover_), colors.comment, Qt::DotLine, 1);
  if (!current_) return;
  const int x = xOf(*current_);
  // A thin line in the grey of an inactive window's selection would not be seen on the fills.
  const auto highlight = palette().color(QPalette::Active, QPalette::Highlight);
  line(x, highlight, Qt::SolidLine, 2);
  const auto level = yOf(timeline_->total(*current_), area);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(colors.background, 1));
  painter.setBrush(highlight);
  painter.drawEllipse(QPointF(x + 0.5, level), 4, 4);
}

QString MemoryView::peakText() const { return tr("peak %1").arg(bytesText(timeline_->peakBytes)); }

QRect MemoryView::peakLabel() const {
  const int x = xOf(timeline_->peakPosition);
  const int width = fontMetrics().horizontalAdvance(peakText());
  // Next to the mark, on the side where there is room.
  return {x + 8 + width < rect().right() ? x + 8 : x - 8 - width, 0, width, fontMetrics().height()};
}

void MemoryView::pick(std::size_t position) {
  setCurrent(position);
  // What is chosen by key comes into sight.
  if (const auto at = static_cast<double>(position); at < begin_ || at >= end_)
    zoomTo(at - (end_ - begin_) / 2, at + (end_ - begin_) / 2);
  Q_EMIT picked(position);
}

void MemoryView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (event->modifiers() & Qt::ShiftModifier && positionAt(event->position())) {
    dragFrom_ = dragTo_ = placeOf(event->position().x());
    return update();
  }
  if (const auto position = positionAt(event->position())) pick(*position);
}

void MemoryView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto position = positionAt(event->position()); position && event->button() == Qt::LeftButton)
    Q_EMIT activated(*position);
}

void MemoryView::mouseMoveEvent(QMouseEvent* event) {
  if (dragFrom_) {
    dragTo_ = placeOf(event->position().x());
    return update();
  }
  const auto position = positionAt(event->position());
  if (position == hover_) return;
  hover_ = position;
  if (position && (event->buttons() & Qt::LeftButton)) pick(*position);
  Q_EMIT hovered(hover_);
  update();
}

void MemoryView::mouseReleaseEvent(QMouseEvent* event) {
  if (!dragFrom_) return QWidget::mouseReleaseEvent(event);
  const auto from = *std::exchange(dragFrom_, {}), to = *std::exchange(dragTo_, {});
  if (std::abs(xAt(from) - xAt(to)) > 4) return zoomTo(std::min(from, to), std::max(from, to));
  update();
}

void MemoryView::wheelEvent(QWheelEvent* event) {
  if (empty()) return QWidget::wheelEvent(event);
  const auto delta = event->angleDelta();
  const double steps = (delta.y() != 0 ? delta.y() : delta.x()) / 120.0;
  if (event->modifiers() & Qt::ShiftModifier || delta.y() == 0) {
    const double by = -steps * (end_ - begin_) / 8;
    zoomTo(begin_ + std::clamp(by, -begin_, static_cast<double>(count()) - end_),
           end_ + std::clamp(by, -begin_, static_cast<double>(count()) - end_));
  } else {
    zoomBy(std::pow(0.8, steps), std::clamp(placeOf(event->position().x()), begin_, end_));
  }
  event->accept();
}

void MemoryView::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  hover_.reset();
  Q_EMIT hovered(hover_);
  update();
}

void MemoryView::keyPressEvent(QKeyEvent* event) {
  if (empty()) return QWidget::keyPressEvent(event);
  const auto last = count() - 1;
  const auto from = current_.value_or(execution_ > 0 ? std::min(execution_ - 1, last) : 0);
  const auto step = event->modifiers() & Qt::ControlModifier ? std::max<std::size_t>(1, count() / 10) : 1;
  switch (event->key()) {
    case Qt::Key_Left: return pick(from > step ? from - step : 0);
    case Qt::Key_Right: return pick(std::min(last, current_ ? from + step : from));
    case Qt::Key_Home: return pick(0);
    case Qt::Key_End: return pick(last);
    case Qt::Key_P: return pick(timeline_->peakPosition);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(0.5, std::clamp(static_cast<double>(from), begin_, end_));
    case Qt::Key_Minus: return zoomBy(2, std::clamp(static_cast<double>(from), begin_, end_));
    case Qt::Key_Space: Q_EMIT listRequested(from, mapToGlobal(QPoint(xOf(from), plot().center().y()))); return;
    case Qt::Key_0: return zoomTo(0, static_cast<double>(count()));
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_) Q_EMIT activated(*current_);
      return;
    default: return QWidget::keyPressEvent(event);
  }
}

void MemoryView::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}

void MemoryView::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  update();
}

}  // namespace retrograd::views
