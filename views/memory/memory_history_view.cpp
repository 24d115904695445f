#include "views/memory/memory_history_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "views/text/format.h"
#include "views/theme/stage_colors.h"

namespace retrograd::views {
namespace {

QString sizeText(std::uint64_t bytes) { return bytesText(static_cast<std::int64_t>(bytes)); }

QColor softer(const QColor& color, const QColor& paper) {
  constexpr double share = 0.6;
  const auto part = [](int a, int b) { return static_cast<int>(a * share + b * (1 - share)); };
  return {part(color.red(), paper.red()), part(color.green(), paper.green()), part(color.blue(), paper.blue())};
}

}  // namespace

MemoryHistoryView::MemoryHistoryView(Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setObjectName(QStringLiteral("memory-history"));
  setAccessibleName(tr("Recorded memory over time"));
  setFocusPolicy(Qt::StrongFocus);
  setMinimumHeight(90);
  connect(theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

QColor MemoryHistoryView::colorOf(const Theme& theme, const MemoryStack& stack, std::size_t band) {
  if (stack.bands()[band].name.empty()) return theme.colors().gutterText;
  return stageColor(static_cast<int>(band), theme.dark());
}

void MemoryHistoryView::set(const ShownMemory& shown, const ShownMemory& other) {
  const bool isAnother = shown.read != shown_.read;
  shown_ = shown;
  other_ = other;
  if (isAnother || empty()) {
    begin_ = 0;
    end_ = empty() ? 1 : static_cast<double>(count());
    current_.reset();
    drawn_.clear();
  }
  if (empty()) {
    setAccessibleDescription({});
  } else {
    const auto& history = shown_.recorded->history;
    setAccessibleDescription(
        tr("%1 events, peak %2 at event %3").arg(count()).arg(sizeText(history.peakBytes)).arg(history.peakEvent));
  }
  askForColumns();
}

void MemoryHistoryView::askForColumns() {
  if (empty()) {
    columns_.cancel();
    drawn_.clear();
    otherDrawn_.clear();
    return update();
  }
  const auto [begin, end] = range();
  const auto wide = static_cast<std::size_t>(std::max(1, plot().width()));
  columns_.start([this, stack = shown_.stack, other = other_.stack, begin = begin, end = end,
                  wide](const Progress&) -> PoolJob::Deliver {
    auto columns = stack->columns(begin, end, wide);
    Columns otherColumns;
    if (other && other->events() > 0) {
      const double scale = static_cast<double>(other->events()) / static_cast<double>(stack->events());
      const auto to = std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(end) * scale));
      otherColumns = other->columns(static_cast<std::size_t>(static_cast<double>(begin) * scale), to, wide);
    }
    return [this, columns = std::move(columns), otherColumns = std::move(otherColumns), begin, end] {
      drawn_ = columns;
      otherDrawn_ = otherColumns;
      drawnBegin_ = static_cast<double>(begin);
      drawnEnd_ = static_cast<double>(end);
      update();
    };
  });
  update();
}

void MemoryHistoryView::setCurrent(std::optional<std::size_t> event) {
  if (event && (empty() || *event >= count())) event.reset();
  current_ = event;
  update();
}

std::uint64_t MemoryHistoryView::topBytes() const {
  auto top = std::max<std::uint64_t>(1, shown_.recorded->history.peakBytes);
  if (other_.recorded) top = std::max(top, other_.recorded->history.peakBytes);
  if (shown_.prediction && !other_.recorded)
    for (const auto& step : shown_.prediction->steps) top = std::max(top, step.peakBytes);
  return top;
}

QRect MemoryHistoryView::plot() const {
  const int axis = empty() ? 0 : fontMetrics().horizontalAdvance(sizeText(topBytes())) + 8;
  return rect().adjusted(6 + axis, fontMetrics().height() + 6, -8, -fontMetrics().height() - 6);
}

double MemoryHistoryView::yOf(std::uint64_t bytes, const QRect& area) const {
  return area.bottom() - static_cast<double>(bytes) / static_cast<double>(topBytes()) * (area.height() - 1);
}

double MemoryHistoryView::eventOf(double x) const {
  return begin_ + (x - plot().left()) / std::max(1, plot().width()) * (end_ - begin_);
}

double MemoryHistoryView::xAt(double event) const {
  return plot().left() + (event - begin_) / (end_ - begin_) * plot().width();
}

int MemoryHistoryView::xOf(std::size_t event) const { return static_cast<int>(xAt(static_cast<double>(event) + 0.5)); }

std::pair<std::size_t, std::size_t> MemoryHistoryView::range() const {
  if (empty()) return {0, 0};
  return {static_cast<std::size_t>(begin_), std::min(count(), static_cast<std::size_t>(std::ceil(end_)))};
}

std::optional<std::size_t> MemoryHistoryView::eventAt(const QPointF& point) const {
  const auto area = plot();
  if (empty() || point.x() < area.left() || point.x() >= area.left() + area.width()) return std::nullopt;
  return std::min(count() - 1, static_cast<std::size_t>(std::max(0.0, eventOf(point.x()))));
}

void MemoryHistoryView::zoomTo(double begin, double end) {
  if (empty()) return;
  const auto all = static_cast<double>(count());
  const double wide = std::clamp(end - begin, std::min(2.0, all), all);
  begin_ = std::clamp((begin + end - wide) / 2, 0.0, all - wide);
  end_ = begin_ + wide;
  askForColumns();
}

void MemoryHistoryView::zoomBy(double factor, double around) {
  if (!empty()) zoomTo(around - (around - begin_) * factor, around + (end_ - around) * factor);
}

void MemoryHistoryView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const auto& colors = theme_->colors();
  painter.fillRect(rect(), colors.background);
  const auto area = plot();
  if (empty()) {
    painter.setPen(colors.gutterText);
    painter.drawText(rect().adjusted(12, 0, -12, 0), Qt::AlignCenter | Qt::TextWordWrap,
                     shown_.recorded ? tr("This snapshot has no history: record one with "
                                          "torch.cuda.memory._record_memory_history")
                                     : tr("Open what torch.cuda.memory._dump_snapshot wrote to see what held the GPU's "
                                          "memory, when, and for whom"));
  } else if (area.width() > 1 && area.height() > 1) {
    paintAxes(painter, area);
    painter.save();
    painter.setClipRect(area.adjusted(-1, -area.top(), 1, rect().bottom() - area.bottom()));
    paintStack(painter, area);
    paintOther(painter, area);
    paintPredicted(painter, area);
    paintMarks(painter, area);
    painter.restore();
  }
  if (!hasFocus()) return;
  painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void MemoryHistoryView::paintAxes(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const int line = fontMetrics().height();
  std::uint64_t step = 1;
  while (topBytes() / step > static_cast<std::uint64_t>(std::clamp(area.height() / (2 * line), 1, 5))) step *= 2;
  for (std::uint64_t bytes = 0; bytes <= topBytes(); bytes += step) {
    const int y = static_cast<int>(yOf(bytes, area));
    painter.fillRect(QRect(area.left() - 3, y, area.width() + 3, 1), colors.border);
    painter.setPen(colors.gutterText);
    painter.drawText(QRect(0, y - line / 2, area.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter, sizeText(bytes));
  }
  const auto [begin, end] = range();
  std::size_t apart = 1;
  const double room = 1.6 * fontMetrics().horizontalAdvance(QString::number(count())) + 12;
  for (int i = 0; static_cast<double>(apart) * area.width() / (end_ - begin_) < room && apart < count(); ++i)
    apart = i % 3 == 1 ? apart / 2 * 5 : apart * 2;
  for (auto event = (begin + apart - 1) / apart * apart; event < end; event += apart) {
    const auto text = QString::number(event);
    const int x = xOf(event), width = fontMetrics().horizontalAdvance(text);
    painter.fillRect(QRect(x, area.bottom() + 1, 1, 4), colors.gutterText);
    painter.setPen(colors.gutterText);
    painter.drawText(
        QRect(std::clamp(x - width / 2, 2, std::max(2, this->width() - width - 2)), area.bottom() + 5, width, line),
        Qt::AlignLeft | Qt::TextDontClip, text);
  }
}

void MemoryHistoryView::paintStack(QPainter& painter, const QRect& area) const {
  const auto bands = shown_.stack->bands().size();
  std::vector<QColor> lines(bands), fills(bands);
  for (std::size_t band = 0; band < bands; ++band) {
    lines[band] = colorOf(*theme_, *shown_.stack, band);
    fills[band] = softer(lines[band], theme_->colors().background);
  }
  const double wide = (drawnEnd_ - drawnBegin_) / static_cast<double>(std::max<std::size_t>(drawn_.size(), 1));
  for (std::size_t i = 0; i < drawn_.size(); ++i) {
    const int left = static_cast<int>(xAt(drawnBegin_ + wide * static_cast<double>(i))),
              right = std::max(left + 1, static_cast<int>(xAt(drawnBegin_ + wide * static_cast<double>(i + 1))));
    std::uint64_t below = 0;
    for (std::size_t band = 0; band < std::min(bands, drawn_[i].parts.size()); ++band) {
      if (drawn_[i].parts[band] == 0) continue;
      const int bottom = static_cast<int>(yOf(below, area));
      below += drawn_[i].parts[band];
      const int top = static_cast<int>(yOf(below, area));
      painter.fillRect(QRect(left, top, right - left, std::max(1, bottom - top)), fills[band]);
      painter.fillRect(QRect(left, top, right - left, 1), lines[band]);
    }
  }
}

void MemoryHistoryView::paintLine(QPainter& painter, const QPolygonF& line, Qt::PenStyle style) const {
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme_->colors().background, 4));
  painter.drawPolyline(line);
  painter.setPen(QPen(theme_->colors().text, 2, style));
  painter.drawPolyline(line);
}

void MemoryHistoryView::paintOther(QPainter& painter, const QRect& area) const {
  if (otherDrawn_.empty()) return;
  QPolygonF line;
  const double wide = (drawnEnd_ - drawnBegin_) / static_cast<double>(otherDrawn_.size());
  for (std::size_t i = 0; i < otherDrawn_.size(); ++i)
    line << QPointF(xAt(drawnBegin_ + wide * (static_cast<double>(i) + 0.5)), yOf(otherDrawn_[i].bytes, area));
  paintLine(painter, line, Qt::DashLine);
}

/// The highest point of each column of pixels: a step may have millions of ops.
void MemoryHistoryView::paintPredicted(QPainter& painter, const QRect& area) const {
  if (!shown_.prediction || other_.recorded) return;
  for (const auto& step : shown_.prediction->steps) {
    QPolygonF line;
    for (const auto& [event, bytes] : step.line) {
      const auto x = std::floor(xAt(static_cast<double>(event))), y = yOf(bytes, area);
      if (!line.isEmpty() && line.back().x() == x) line.back().setY(std::min(line.back().y(), y));
      else line << QPointF(x, y);
    }
    paintLine(painter, line, Qt::DotLine);
  }
}

void MemoryHistoryView::paintFlag(QPainter& painter, const QRect& area, std::int64_t event, const QString& text,
                                  const QColor& color) const {
  if (event < 0) return;
  const int x = xOf(static_cast<std::size_t>(event));
  if (x < area.left() || x > area.right()) return;
  painter.setBrush(color);
  painter.setPen(Qt::NoPen);
  painter.drawPolygon(
      QPolygonF{{QPointF(x + 0.5, area.top()), QPointF(x - 4, area.top() - 6), QPointF(x + 5, area.top() - 6)}});
  painter.setPen(color);
  const int width = fontMetrics().horizontalAdvance(text);
  const QRect place(x + 8 + width < rect().right() ? x + 8 : x - 8 - width, 1, width, fontMetrics().height());
  painter.drawText(place, Qt::AlignLeft | Qt::TextDontClip, text);
}

void MemoryHistoryView::paintMarks(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const auto& recorded = *shown_.recorded;
  const auto line = [&](int x, const QColor& color, Qt::PenStyle style, qreal width) {
    painter.setPen(QPen(color, width, style));
    painter.drawLine(QPointF(x + 0.5, area.top() - 2), QPointF(x + 0.5, area.bottom() + 2));
  };
  if (recorded.history.steps.size() < 40)
    for (const auto& step : recorded.history.steps)
      line(xOf(static_cast<std::size_t>(step.from)), colors.comment, Qt::DashLine, 1);
  if (recorded.failed >= 0) {
    line(xOf(static_cast<std::size_t>(recorded.failed)), colors.bad, Qt::SolidLine, 2);
    paintFlag(painter, area, recorded.failed, tr("failed"), colors.bad);
  } else {
    paintFlag(painter, area, recorded.history.peakEvent, tr("peak %1").arg(sizeText(recorded.history.peakBytes)),
              colors.text);
  }
  if (current_) line(xOf(*current_), palette().color(QPalette::Active, QPalette::Highlight), Qt::SolidLine, 2);
  if (!dragFrom_ || !dragTo_) return;
  auto shade = palette().color(QPalette::Highlight);
  shade.setAlphaF(0.25F);
  painter.fillRect(QRectF(QPointF(xAt(std::min(*dragFrom_, *dragTo_)), area.top()),
                          QPointF(xAt(std::max(*dragFrom_, *dragTo_)), area.bottom())),
                   shade);
}

void MemoryHistoryView::pick(std::size_t event) {
  setCurrent(event);
  if (const auto at = static_cast<double>(event); at < begin_ || at >= end_)
    zoomTo(at - (end_ - begin_) / 2, at + (end_ - begin_) / 2);
  Q_EMIT picked(event);
}

void MemoryHistoryView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  const auto at = eventAt(event->position());
  if (at && event->modifiers() & Qt::ShiftModifier) {
    dragFrom_ = dragTo_ = eventOf(event->position().x());
    return update();
  }
  if (at) pick(*at);
}

void MemoryHistoryView::mouseMoveEvent(QMouseEvent* event) {
  if (dragFrom_) {
    dragTo_ = eventOf(event->position().x());
    return update();
  }
  if (const auto at = eventAt(event->position()); at && event->buttons() & Qt::LeftButton) pick(*at);
}

void MemoryHistoryView::mouseReleaseEvent(QMouseEvent* event) {
  if (!dragFrom_) return QWidget::mouseReleaseEvent(event);
  const auto from = *std::exchange(dragFrom_, {}), to = *std::exchange(dragTo_, {});
  if (std::abs(xAt(from) - xAt(to)) > 4) return zoomTo(std::min(from, to), std::max(from, to));
  update();
}

void MemoryHistoryView::wheelEvent(QWheelEvent* event) {
  if (empty()) return QWidget::wheelEvent(event);
  const auto delta = event->angleDelta();
  const double steps = (delta.y() != 0 ? delta.y() : delta.x()) / 120.0;
  if (event->modifiers() & Qt::ShiftModifier || delta.y() == 0) {
    const double by = std::clamp(-steps * (end_ - begin_) / 8, -begin_, static_cast<double>(count()) - end_);
    zoomTo(begin_ + by, end_ + by);
  } else {
    zoomBy(std::pow(0.8, steps), std::clamp(eventOf(event->position().x()), begin_, end_));
  }
  event->accept();
}

void MemoryHistoryView::keyPressEvent(QKeyEvent* event) {
  if (empty()) return QWidget::keyPressEvent(event);
  const auto last = count() - 1;
  const auto& recorded = *shown_.recorded;
  const auto from = current_.value_or(static_cast<std::size_t>(std::max<std::int64_t>(recorded.first(), 0)));
  const auto step = event->modifiers() & Qt::ControlModifier ? std::max<std::size_t>(1, count() / 10) : 1;
  switch (event->key()) {
    case Qt::Key_Left: return pick(from > step ? from - step : 0);
    case Qt::Key_Right: return pick(std::min(last, current_ ? from + step : from));
    case Qt::Key_Home: return pick(0);
    case Qt::Key_End: return pick(last);
    case Qt::Key_P: return pick(static_cast<std::size_t>(std::max<std::int64_t>(recorded.history.peakEvent, 0)));
    case Qt::Key_F:
      if (recorded.failed >= 0) pick(static_cast<std::size_t>(recorded.failed));
      return;
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(0.5, std::clamp(static_cast<double>(from), begin_, end_));
    case Qt::Key_Minus: return zoomBy(2, std::clamp(static_cast<double>(from), begin_, end_));
    case Qt::Key_0: return zoomTo(0, static_cast<double>(count()));
    default: return QWidget::keyPressEvent(event);
  }
}

void MemoryHistoryView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  askForColumns();
}

void MemoryHistoryView::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}

void MemoryHistoryView::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  update();
}

}  // namespace retrograd::views
