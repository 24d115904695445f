#include "views/canvases/memory_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "views/text/format.h"

namespace retrograd::views {

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

QColor MemoryView::colorOf(const Colors& colors, MemoryUse use) { return colors.memory[static_cast<std::size_t>(use)]; }

void MemoryView::set(std::shared_ptr<const MemoryTimeline> timeline, std::size_t forwardSize) {
  timeline_ = std::move(timeline);
  stack_ = {};
  forwardSize_ = forwardSize;
  hover_.reset();
  if (empty() || (current_ && *current_ >= count())) current_.reset();
  setAccessibleDescription(empty() ? QString()
                                   : tr("%1 ops, peak %2 after op %3")
                                         .arg(count())
                                         .arg(bytesText(timeline_->peakBytes))
                                         .arg(timeline_->peakPosition + 1));
  update();
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

QRect MemoryView::plot() const { return rect().adjusted(6, fontMetrics().height() + 4, -6, -fontMetrics().height() - 4); }

std::optional<std::size_t> MemoryView::positionAt(const QPointF& point) const {
  const auto area = plot();
  if (empty() || area.width() <= 0 || point.x() < area.left() || point.x() >= area.left() + area.width()) return std::nullopt;
  const double share = (point.x() - area.left()) / area.width();
  return std::min(count() - 1, static_cast<std::size_t>(share * static_cast<double>(count())));
}

int MemoryView::xOf(std::size_t position) const {
  const auto area = plot();
  return area.left() + static_cast<int>((static_cast<double>(position) + 0.5) * area.width() / static_cast<double>(count()));
}

void MemoryView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const auto& colors = theme_->colors();
  painter.fillRect(rect(), colors.background);
  if (empty()) {
    painter.setPen(colors.gutterText);
    painter.drawText(rect(), Qt::AlignCenter, tr("No forward and backward"));
    return;
  }
  const auto area = plot();
  if (area.width() < 2 || area.height() < 2) return;
  painter.drawPixmap(QPoint(0, 0), stack(area));
  painter.fillRect(QRect(area.left(), area.bottom() + 1, area.width(), 1), colors.border);
  paintMarks(painter, area);
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
    paintStack(painter, area);
  }
  return stack_;
}

/// One column of pixels at a time, each as high as the highest op in it: a peak of one op among a million shows.
void MemoryView::paintStack(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const auto peak = static_cast<double>(std::max<std::int64_t>(1, timeline_->peakBytes));
  for (int column = 0; column < area.width(); ++column) {
    const auto at = [&](int x) { return static_cast<std::size_t>(static_cast<double>(x) * static_cast<double>(count()) / area.width()); };
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
      painter.fillRect(QRect(area.left() + column, top, 1, std::max(1, bottom - top)), colorOf(colors, static_cast<MemoryUse>(use)));
    }
  }
}

void MemoryView::paintMarks(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const auto line = [&](int x, const QColor& color, Qt::PenStyle style, qreal width) {
    painter.setPen(QPen(color, width, style));
    painter.drawLine(QPointF(x + 0.5, area.top() - 2), QPointF(x + 0.5, area.bottom() + 2));
  };
  const int below = area.bottom() + 3 + fontMetrics().ascent();
  if (forwardSize_ > 0 && forwardSize_ < count()) {
    const int border = area.left() + static_cast<int>(static_cast<double>(forwardSize_) * area.width() / static_cast<double>(count()));
    line(border, colors.text, Qt::DashLine, 1);
    painter.setPen(colors.comment);
    // At the outer ends, where the execution mark seldom stands.
    const QRect labels(area.left(), area.bottom() + 3, area.width(), fontMetrics().height());
    painter.drawText(labels, Qt::AlignLeft, tr("forward"));
    painter.drawText(labels, Qt::AlignRight, tr("backward"));
  }
  // The execution mark points up from below, the peak's down from above: told apart by place and shape, not by colour.
  if (execution_ > 0 && execution_ <= count()) {
    const int x = xOf(execution_ - 1);
    line(x, colors.execution, Qt::SolidLine, 2);
    painter.setBrush(colors.execution);
    painter.setPen(Qt::NoPen);
    painter.drawPolygon(QPolygonF{{QPointF(x + 0.5, area.bottom() + 1), QPointF(x - 4, below), QPointF(x + 5, below)}});
  }
  const int peak = xOf(timeline_->peakPosition);
  painter.setBrush(colors.text);
  painter.setPen(Qt::NoPen);
  painter.drawPolygon(QPolygonF{{QPointF(peak + 0.5, area.top()), QPointF(peak - 4, area.top() - 6), QPointF(peak + 5, area.top() - 6)}});
  paintLabel(painter, peak, fontMetrics().ascent() + 1, tr("peak %1").arg(bytesText(timeline_->peakBytes)), colors.text);
  if (hover_ && hover_ != current_) line(xOf(*hover_), colors.comment, Qt::DotLine, 1);
  if (!current_) return;
  const int x = xOf(*current_);
  line(x, palette().color(QPalette::Highlight), Qt::SolidLine, 2);
  const auto level = area.bottom() - static_cast<double>(timeline_->total(*current_)) /
                                         static_cast<double>(std::max<std::int64_t>(1, timeline_->peakBytes)) * (area.height() - 1);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(colors.background, 1));
  painter.setBrush(palette().color(QPalette::Highlight));
  painter.drawEllipse(QPointF(x + 0.5, level), 4, 4);
}

void MemoryView::paintLabel(QPainter& painter, int x, int y, const QString& text, const QColor& color) const {
  const int width = fontMetrics().horizontalAdvance(text);
  painter.setPen(color);
  // Beside the mark, on the side where there is room.
  painter.drawText(x + 8 + width < rect().right() ? x + 8 : x - 8 - width, y, text);
}

void MemoryView::pick(std::size_t position) {
  setCurrent(position);
  Q_EMIT picked(position);
}

void MemoryView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const auto position = positionAt(event->position())) pick(*position);
}

void MemoryView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto position = positionAt(event->position()); position && event->button() == Qt::LeftButton) Q_EMIT activated(*position);
}

void MemoryView::mouseMoveEvent(QMouseEvent* event) {
  const auto position = positionAt(event->position());
  if (position == hover_) return;
  hover_ = position;
  if (position && (event->buttons() & Qt::LeftButton)) pick(*position);
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
  if (empty()) return QWidget::keyPressEvent(event);
  const auto last = count() - 1;
  const auto from = current_.value_or(execution_ > 0 ? std::min(execution_ - 1, last) : 0);
  const auto step = event->modifiers() & Qt::ControlModifier ? std::max<std::size_t>(1, count() / 10) : 1;
  switch (event->key()) {
    case Qt::Key_Left:
      return pick(from > step ? from - step : 0);
    case Qt::Key_Right:
      return pick(std::min(last, current_ ? from + step : from));
    case Qt::Key_Home:
      return pick(0);
    case Qt::Key_End:
      return pick(last);
    case Qt::Key_P:
      return pick(timeline_->peakPosition);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_) Q_EMIT activated(*current_);
      return;
    default:
      return QWidget::keyPressEvent(event);
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
