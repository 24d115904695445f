#include "views/canvases/memory_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/text/format.h"

namespace retrograd::views {
MemoryView::MemoryView(Theme* theme, QWidget* parent) : ZoomedPlot(theme, 4, parent) {
  setObjectName(QStringLiteral("memory-timeline"));
  setAccessibleName(tr("Memory timeline"));
  setMouseTracking(true);
  setMinimumHeight(70);
  connect(theme_, &Theme::changed, this, [this] {
    stack_ = {};
    update();
  });
}

QColor MemoryView::fillOf(const Colors& colors, MemoryUse use) {
  return softer(colorOf(colors, use), colors.background);
}

void MemoryView::set(std::shared_ptr<const MemoryTimeline> timeline, std::size_t forwardSize,
                     std::function<BoundSymbolId(std::size_t)> opAt) {
  timeline_ = std::move(timeline);
  other_ = nullptr;
  opAt_ = std::move(opAt);
  stack_ = {};
  forwardSize_ = forwardSize;
  hover_.reset();
  resetRange();
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

void MemoryView::setExecution(std::size_t position) {
  if (position == execution_) return;
  execution_ = position;
  update();
}

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
  paintChoice(painter, area);
  painter.restore();
  paintCursor(painter, area);  // of the first ops it begins left of the plot
  paintFocus(painter);
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
    const auto at = [&](int x) { return static_cast<std::size_t>(placeOf(area.left() + x)); };
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

void MemoryView::paintAxes(QPainter& painter, const QRect& area) const {
  paintBytes(painter, area);
  for (const auto& [position, text] : ticks()) paintTick(painter, area, position, text);
}

/// The op under the pointer, else the selected one, by the number that everything else knows it by.
void MemoryView::paintCursor(QPainter& painter, const QRect& area) const {
  const auto at = hover_ ? hover_ : current();
  if (!at || *at >= count()) return;
  const auto& colors = theme_->colors();
  const auto id = cursorText();
  const QRect place = belowAxis(xOf(*at), id, area);
  painter.fillRect(place.adjusted(-4, 0, 4, 0), colors.text);
  painter.setPen(colors.background);
  painter.drawText(place, Qt::AlignLeft | Qt::TextDontClip, id);
}

QString MemoryView::cursorText() const {
  const auto at = hover_ ? hover_ : current();
  return at && !empty() && *at < count() ? QStringLiteral("%1: %2").arg(*at + 1).arg(idAt(*at)) : QString();
}

std::vector<std::pair<std::size_t, QString>> MemoryView::ticks() const {
  std::vector<std::pair<std::size_t, QString>> ticks;
  const auto area = plot();
  if (empty() || area.width() < 2) return ticks;
  // Steps are counted from 1, as the position in the tool bar is.
  const auto apart = ticksApart();
  const auto end = range().second;
  const auto first = static_cast<std::size_t>(std::ceil(sightBegin())) + 1;
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
  paintCurve(painter, line, Qt::DotLine);
}

void MemoryView::paintMarks(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  if (forwardSize_ > 0 && forwardSize_ < count()) {
    const int border = static_cast<int>(xAt(static_cast<double>(forwardSize_)));
    paintUpright(painter, area, border, colors.text, Qt::DashLine, 1);
    painter.setPen(colors.comment);
    // On both sides of the border, above the plot; at the far end of a side where the peak's label has the place, and
    // left out where neither has room.
    const QRect label = flagPlace(xOf(timeline_->peakPosition), peakText());
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
  if (execution_ > 0 && execution_ <= count())
    paintUpright(painter, area, xOf(execution_ - 1), colors.execution, Qt::SolidLine, 2);
  paintFlag(painter, area, xOf(timeline_->peakPosition), peakText(), colors.text);
  if (hover_ && hover_ != current()) paintUpright(painter, area, xOf(*hover_), colors.comment, Qt::DotLine, 1);
  if (!current()) return;
  const int x = xOf(*current());
  // A thin line in the grey of an inactive window's selection would not be seen on the fills.
  const auto highlight = palette().color(QPalette::Active, QPalette::Highlight);
  paintUpright(painter, area, x, highlight, Qt::SolidLine, 2);
  const auto level = yOf(timeline_->total(*current()), area);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(colors.background, 1));
  painter.setBrush(highlight);
  painter.drawEllipse(QPointF(x + 0.5, level), 4, 4);
}

QString MemoryView::peakText() const { return tr("peak %1").arg(bytesText(timeline_->peakBytes)); }

void MemoryView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto position = positionAt(event->position()); position && event->button() == Qt::LeftButton)
    Q_EMIT activated(*position);
}

void MemoryView::mouseMoveEvent(QMouseEvent* event) {
  ZoomedPlot::mouseMoveEvent(event);
  const auto position = positionAt(event->position());
  if (choosesRange() || position == hover_) return;
  hover_ = position;
  Q_EMIT hovered(hover_);
  update();
}

void MemoryView::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  hover_.reset();
  Q_EMIT hovered(hover_);
  update();
}

void MemoryView::keyPressEvent(QKeyEvent* event) {
  if (empty()) return ZoomedPlot::keyPressEvent(event);
  const auto from = current().value_or(firstByKey());
  switch (event->key()) {
    case Qt::Key_P: return pick(timeline_->peakPosition);
    case Qt::Key_Space: Q_EMIT listRequested(from, mapToGlobal(QPoint(xOf(from), plot().center().y()))); return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current()) Q_EMIT activated(*current());
      return;
    default: ZoomedPlot::keyPressEvent(event);
  }
}

}  // namespace retrograd::views
