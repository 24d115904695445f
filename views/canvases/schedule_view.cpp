#include "views/canvases/schedule_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

namespace retrograd::views {
namespace {

constexpr double widest = 20'000'000;  // pixels: scroll bars count in int

}  // namespace

ScheduleView::ScheduleView(Theme* theme, QWidget* parent) : ScrolledCanvas(theme, parent) {
  setObjectName(QStringLiteral("schedule-view"));
  setAccessibleName(tr("Schedule over time"));
  viewport()->setMouseTracking(true);
  setMinimumHeight(80);
}

QColor ScheduleView::colorOf(ActionKind kind) const {
  const auto& colors = theme_->colors().schedule;
  switch (kind) {
    case ActionKind::forward: return colors.forward;
    case ActionKind::backwardInput: return colors.backwardInput;
    case ActionKind::backwardWeight: return colors.backwardWeight;
    default: return colors.backward;
  }
}

void ScheduleView::show(ScheduleLayout layout) {
  layout_ = std::move(layout);
  current_ = hovered_ = -1;
  fits_ = true;
  scale_ = fitScale();
  placeBars();
  const auto* run = layout_.run();
  setAccessibleDescription(layout_.empty() ? hint_
                                           : tr("%1 ranks, %2 cells, until %3")
                                                 .arg(layout_.ranks())
                                                 .arg(layout_.cells().size())
                                                 .arg(run->timeText(layout_.makespan())));
  viewport()->update();
  Q_EMIT told(-1);
}

void ScheduleView::setHint(const QString& hint) {
  hint_ = hint;
  if (layout_.empty()) setAccessibleDescription(hint);
  viewport()->update();
}

int ScheduleView::labelWidth() const {
  return side + fontMetrics().horizontalAdvance(tr("rank %1").arg(std::max(0, layout_.ranks() - 1))) + 10;
}
double ScheduleView::x(double time) const { return labelWidth() + time * scale_ - horizontalScrollBar()->value(); }
double ScheduleView::time(double x) const { return (x - labelWidth() + horizontalScrollBar()->value()) / scale_; }
int ScheduleView::y(int rank) const { return 4 + rank * (rowHeight + rowGap) - verticalScrollBar()->value(); }

QRectF ScheduleView::cellRect(int index) const {
  const auto& cell = layout_.cell(index);
  return {x(cell.start), static_cast<double>(y(cell.rank)), (cell.end - cell.start) * scale_, rowHeight};
}

int ScheduleView::cellAt(const QPointF& point) const {
  if (layout_.empty() || point.x() < labelWidth() || point.y() >= viewport()->height() - axisHeight()) return -1;
  const int within = static_cast<int>(std::floor(point.y())) - y(0);
  if (within < 0 || within % (rowHeight + rowGap) >= rowHeight) return -1;
  return layout_.cellAt(within / (rowHeight + rowGap), time(point.x()));
}

void ScheduleView::placeBars() {
  const int plot = plotWidth(), all = static_cast<int>(std::min(widest, std::ceil(layout_.makespan() * scale_ - 0.5)));
  horizontalScrollBar()->setRange(0, std::max(0, all - plot));
  horizontalScrollBar()->setPageStep(plot);
  horizontalScrollBar()->setSingleStep(40);
  const int rows = layout_.ranks() * (rowHeight + rowGap) + 4, room = std::max(1, viewport()->height() - axisHeight());
  verticalScrollBar()->setRange(0, std::max(0, rows - room));
  verticalScrollBar()->setPageStep(room);
  verticalScrollBar()->setSingleStep(rowHeight + rowGap);
}

void ScheduleView::setScale(double scale) {
  const double least = fitScale(), most = std::max(least, std::min(240 / std::max(layout_.shortest(), 1e-300),
                                                                   widest / std::max(layout_.makespan(), 1e-300)));
  scale_ = std::clamp(scale, least, most);
  fits_ = scale_ <= least;
  placeBars();
  viewport()->update();
}

void ScheduleView::zoomBy(double factor, double at) {
  if (layout_.empty()) return;
  const auto kept = time(at);
  setScale(scale_ * factor);
  horizontalScrollBar()->setValue(static_cast<int>(std::lround(labelWidth() + kept * scale_ - at)));
}

void ScheduleView::resizeEvent(QResizeEvent* event) {
  ScrolledCanvas::resizeEvent(event);
  setScale(fits_ ? 0 : scale_);
}

void ScheduleView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), theme_->colors().background);
  if (layout_.empty()) return paintHint(painter, {12, 12, 12, 12}, hint_);
  const QRect rows(0, 0, viewport()->width(), viewport()->height() - axisHeight());
  painter.setClipRect(rows);
  for (int rank = 0; rank < layout_.ranks(); ++rank)
    if (y(rank) + rowHeight >= 0 && y(rank) < rows.bottom()) paintRank(painter, rank);
  painter.setClipping(false);
  paintAxis(painter);
  paintFocus(painter);
}

void ScheduleView::paintRank(QPainter& painter, int rank) const {
  const auto& colors = theme_->colors();
  painter.setPen(colors.text);
  painter.setFont(font());
  painter.drawText(QRect(side, y(rank), labelWidth() - side, rowHeight), Qt::AlignVCenter | Qt::AlignLeft,
                   tr("rank %1").arg(rank));
  painter.save();
  painter.setClipRect(
      QRect(labelWidth() - 1, 0, viewport()->width() - labelWidth() + 1, viewport()->height() - axisHeight()));
  const double from = time(labelWidth()), to = time(viewport()->width());
  painter.setPen(QPen(colors.border, 1));
  painter.setBrush(QBrush(colors.gutterText, Qt::BDiagPattern));
  for (const auto& gap : layout_.gaps(rank)) {
    if (gap.end < from || gap.start > to || (gap.end - gap.start) * scale_ < 1) continue;
    painter.drawRect(QRectF(x(gap.start), y(rank) + 0.5, (gap.end - gap.start) * scale_, rowHeight - 1));
  }
  double painted = -1;  // cells that are narrower than a pixel: one of them is enough
  for (int i = layout_.firstAfter(rank, from); i < layout_.end(rank) && layout_.cell(i).start <= to; ++i) {
    const auto rect = cellRect(i);
    if (rect.right() < painted + 1 && i != current_) continue;
    painted = std::floor(rect.right());
    paintCell(painter, layout_.cell(i), rect);
  }
  paintFrames(painter, rank);
  painter.setBrush(Qt::NoBrush);
  for (int marked : {hovered_, current_}) {
    if (marked < 0 || layout_.cell(marked).rank != rank) continue;
    painter.setPen(
        QPen(marked == current_ ? palette().color(QPalette::Highlight) : colors.text, marked == current_ ? 3 : 1));
    painter.drawRect(cellRect(marked).adjusted(0.5, 1.5, -0.5, -1.5));
  }
  painter.restore();
}

void ScheduleView::paintCell(QPainter& painter, const ScheduleCell& cell, const QRectF& rect) const {
  painter.fillRect(rect, colorOf(cell.kind));
  if (rect.width() < 4) return;
  painter.setPen(QPen(theme_->colors().background, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect.adjusted(0, 0.5, 0, -0.5));
  auto small = font();
  small.setPointSizeF(small.pointSizeF() * 0.75);
  const auto fits = [&](const QFont& font, const QString& text) {
    return QFontMetrics(font).horizontalAdvance(text) + 1 <= rect.width();
  };
  // The microbatch goes first where room is short, then the letter gets small.
  auto text = ScheduleLayout::label(cell);
  auto font = this->font();
  if (!fits(font, text)) {
    font = small;
    if (!fits(font, text)) text = ScheduleLayout::letter(cell.kind);
    if (!fits(font, text)) return;
  }
  painter.setPen(theme_->colors().schedule.text);
  painter.setFont(font);
  const auto stage = tr("s%1").arg(cell.stage);
  const bool two = layout_.severalStages() && fits(small, stage);
  painter.drawText(two ? rect.adjusted(0, 1, 0, -rect.height() * 0.4) : rect, Qt::AlignCenter, text);
  painter.setFont(small);
  if (two) painter.drawText(rect.adjusted(0, rect.height() * 0.5, 0, -1), Qt::AlignCenter, stage);
}

/// Around what runs together.
void ScheduleView::paintFrames(QPainter& painter, int rank) const {
  painter.setPen(QPen(theme_->colors().text, 2));
  painter.setBrush(Qt::NoBrush);
  const double from = time(labelWidth()), to = time(viewport()->width());
  for (int i = layout_.begin(rank); i < layout_.end(rank);) {
    const auto& first = layout_.cell(i);
    int end = i + 1;
    while (end < layout_.end(rank) && layout_.cell(end).position == first.position) ++end;
    const double last = layout_.cell(end - 1).end;
    if (first.overlapped && last >= from && first.start <= to && (last - first.start) * scale_ >= 4)
      painter.drawRect(QRectF(x(first.start), y(rank) + 1, (last - first.start) * scale_, rowHeight - 2));
    i = end;
  }
}

/// A mark each hundred pixels or so, at 1, 2 or 5 of a power of ten.
void ScheduleView::paintAxis(QPainter& painter) const {
  const auto& colors = theme_->colors();
  painter.setFont(font());
  const int top = viewport()->height() - axisHeight();
  painter.fillRect(QRect(labelWidth(), top, viewport()->width(), 1), colors.border);
  if (!(layout_.makespan() > 0)) return;
  const double wanted = 100 / scale_, power = std::pow(10.0, std::floor(std::log10(wanted)));
  const double step = power * (wanted / power <= 1 ? 1 : wanted / power <= 2 ? 2 : wanted / power <= 5 ? 5 : 10);
  const double last = std::min(layout_.makespan() * (1 + 1e-9), time(viewport()->width()));
  for (auto i = static_cast<std::int64_t>(std::ceil(std::max(0.0, time(labelWidth())) / step));
       static_cast<double>(i) * step <= last; ++i) {
    const double at = x(static_cast<double>(i) * step);
    painter.fillRect(QRectF(at, top, 1, 4), colors.gutterText);
    const auto text = layout_.run()->timeText(static_cast<double>(i) * step);
    const double width = fontMetrics().horizontalAdvance(text);
    const double left = std::clamp(at - width / 2, static_cast<double>(labelWidth()),
                                   std::max<double>(labelWidth(), viewport()->width() - width - 2));
    painter.setPen(colors.comment);
    painter.drawText(QPointF(left, top + 5 + fontMetrics().ascent()), text);
  }
}

void ScheduleView::setCurrent(int cell) {
  if (cell >= static_cast<int>(layout_.cells().size())) return;
  current_ = cell;
  if (cell >= 0) {
    reveal(cell);
    setAccessibleDescription(layout_.describe(cell));
  }
  viewport()->update();
  Q_EMIT told(hovered_ >= 0 ? hovered_ : current_);
}

void ScheduleView::reveal(int cell) {
  auto* across = horizontalScrollBar();
  auto* down = verticalScrollBar();
  const auto rect = cellRect(cell);
  if (rect.left() < labelWidth() || rect.width() > plotWidth())
    across->setValue(across->value() + static_cast<int>(std::floor(rect.left())) - labelWidth());
  else if (rect.right() > viewport()->width() - side)
    across->setValue(across->value() + static_cast<int>(std::ceil(rect.right())) - viewport()->width() + side);
  const int bottom = viewport()->height() - axisHeight();
  if (rect.top() < 4) down->setValue(down->value() + static_cast<int>(rect.top()) - 4);
  else if (rect.bottom() > bottom) down->setValue(down->value() + static_cast<int>(rect.bottom()) - bottom);
}

void ScheduleView::setHovered(int cell) {
  if (cell == hovered_) return;
  hovered_ = cell;
  viewport()->update();
  Q_EMIT told(hovered_ >= 0 ? hovered_ : current_);
}

void ScheduleView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  if (const int cell = cellAt(event->position()); cell >= 0) setCurrent(cell);
}

void ScheduleView::mouseMoveEvent(QMouseEvent* event) { setHovered(cellAt(event->position())); }

void ScheduleView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int cell = cellAt(event->position()); cell >= 0 && event->button() == Qt::LeftButton)
    Q_EMIT activated(cell);
}

void ScheduleView::wheelEvent(QWheelEvent* event) {
  if (layout_.empty()) return;
  const auto pixels = event->pixelDelta().isNull() ? event->angleDelta() * 3 / 4 : event->pixelDelta();
  if (event->modifiers() & Qt::ControlModifier) {
    zoomBy(std::pow(1.25, event->angleDelta().y() / 120.0), event->position().x());
  } else if (event->modifiers() & Qt::ShiftModifier) {
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() - pixels.y() - pixels.x());
  } else {
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() - pixels.x());
    verticalScrollBar()->setValue(verticalScrollBar()->value() - pixels.y());
  }
  setHovered(cellAt(event->position()));
  event->accept();
}

void ScheduleView::keyPressEvent(QKeyEvent* event) {
  if (layout_.empty()) return ScrolledCanvas::keyPressEvent(event);
  const auto go = [this](int cell) {
    if (cell >= 0) setCurrent(cell);
  };
  const int from = std::max(current_, 0);
  const int step = event->modifiers() & Qt::ControlModifier ? 10 : 1;
  const double middle = current_ >= 0 ? cellRect(current_).center().x() : labelWidth() + plotWidth() / 2.0;
  switch (event->key()) {
    case Qt::Key_Left: return go(layout_.beside(from, -step));
    case Qt::Key_Right: return go(current_ < 0 ? from : layout_.beside(from, step));
    case Qt::Key_Up: return go(layout_.across(from, -1));
    case Qt::Key_Down: return go(current_ < 0 ? from : layout_.across(from, 1));
    case Qt::Key_Home: return go(layout_.begin(layout_.cell(from).rank));
    case Qt::Key_End: return go(layout_.end(layout_.cell(from).rank) - 1);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(1.25, middle);
    case Qt::Key_Minus: return zoomBy(0.8, middle);
    case Qt::Key_0: return zoomToAll();
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_ >= 0) Q_EMIT activated(current_);
      return;
    default: return ScrolledCanvas::keyPressEvent(event);
  }
}

bool ScheduleView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) setHovered(-1);
  return ScrolledCanvas::viewportEvent(event);
}

}  // namespace retrograd::views
