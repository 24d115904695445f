#include "views/memory/memory_history_view.h"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <utility>

#include "views/text/format.h"
#include "views/theme/stage_colors.h"

namespace retrograd::views {
namespace {

QString sizeText(std::uint64_t bytes) { return bytesText(static_cast<std::int64_t>(bytes)); }

}  // namespace

MemoryHistoryView::MemoryHistoryView(Theme* theme, QWidget* parent) : ZoomedPlot(theme, 6, parent) {
  setObjectName(QStringLiteral("memory-history"));
  setAccessibleName(tr("Recorded memory over time"));
  setMinimumHeight(90);
  connect(theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

/// What Memory calls the same has the same colour there.
QColor MemoryHistoryView::colorOf(const Theme& theme, MemoryCategory category) {
  constexpr int rust = 4, purple = 6, olive = 7;  // of stages: told apart from those of the timeline
  const auto& ofUse = theme.colors().memory;
  switch (category) {
    case MemoryCategory::activation: return ofUse[MemoryUse::saved];
    case MemoryCategory::kept: return ofUse[MemoryUse::result];
    case MemoryCategory::gradient: return ofUse[MemoryUse::gradient];
    case MemoryCategory::temporary: return ofUse[MemoryUse::forward];
    case MemoryCategory::recompute: return ofUse[MemoryUse::backward];
    case MemoryCategory::parameter: return stageColor(purple, theme.dark());
    case MemoryCategory::optimizer: return stageColor(rust, theme.dark());
    case MemoryCategory::workspace: return stageColor(olive, theme.dark());
    case MemoryCategory::unknown: break;
  }
  return theme.colors().gutterText;
}

QColor MemoryHistoryView::colorOf(const Theme& theme, const MemoryStack& stack, std::size_t band) {
  const auto& name = stack.bands()[band].name;
  if (name.empty()) return theme.colors().gutterText;
  for (std::size_t i = 0; i < memoryCategoryCount; ++i)
    if (const auto category = static_cast<MemoryCategory>(i); name == retrograd::name(category))
      return colorOf(theme, category);
  return stageColor(static_cast<int>(band), theme.dark());
}

void MemoryHistoryView::set(const ShownMemory& shown, const ShownMemory& other) {
  const bool isAnother = shown.read != shown_.read;
  shown_ = shown;
  other_ = other;
  if (isAnother || empty()) {
    setCurrent({});
    resetRange();
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

std::int64_t MemoryHistoryView::topBytes() const {
  auto top = std::max<std::uint64_t>(1, shown_.recorded->history.peakBytes);
  if (other_.recorded) top = std::max(top, other_.recorded->history.peakBytes);
  if (shown_.prediction && !other_.recorded)
    for (const auto& step : shown_.prediction->steps) top = std::max(top, step.peakBytes);
  return static_cast<std::int64_t>(top);
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
    paintChoice(painter, area);
    painter.restore();
  }
  paintFocus(painter);
}

void MemoryHistoryView::paintAxes(QPainter& painter, const QRect& area) const {
  paintBytes(painter, area);
  const auto [begin, end] = range();
  const auto apart = ticksApart();
  for (auto event = (begin + apart - 1) / apart * apart; event < end; event += apart)
    paintTick(painter, area, event, QString::number(event));
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
    std::int64_t below = 0;
    for (std::size_t band = 0; band < std::min(bands, drawn_[i].parts.size()); ++band) {
      if (drawn_[i].parts[band] == 0) continue;
      const int bottom = static_cast<int>(yOf(below, area));
      below += static_cast<std::int64_t>(drawn_[i].parts[band]);
      const int top = static_cast<int>(yOf(below, area));
      painter.fillRect(QRect(left, top, right - left, std::max(1, bottom - top)), fills[band]);
      painter.fillRect(QRect(left, top, right - left, 1), lines[band]);
    }
  }
}

void MemoryHistoryView::paintOther(QPainter& painter, const QRect& area) const {
  if (otherDrawn_.empty()) return;
  QPolygonF line;
  const double wide = (drawnEnd_ - drawnBegin_) / static_cast<double>(otherDrawn_.size());
  for (std::size_t i = 0; i < otherDrawn_.size(); ++i)
    line << QPointF(xAt(drawnBegin_ + wide * (static_cast<double>(i) + 0.5)),
                    yOf(static_cast<std::int64_t>(otherDrawn_[i].bytes), area));
  paintCurve(painter, line, Qt::DashLine);
}

/// The highest point of each column of pixels: a step may have millions of ops.
void MemoryHistoryView::paintPredicted(QPainter& painter, const QRect& area) const {
  if (!shown_.prediction || other_.recorded) return;
  for (const auto& step : shown_.prediction->steps) {
    QPolygonF line;
    for (const auto& [event, bytes] : step.line) {
      const auto x = std::floor(xAt(static_cast<double>(event))), y = yOf(static_cast<std::int64_t>(bytes), area);
      if (!line.isEmpty() && line.back().x() == x) line.back().setY(std::min(line.back().y(), y));
      else line << QPointF(x, y);
    }
    paintCurve(painter, line, Qt::DotLine);
  }
}

void MemoryHistoryView::paintMarks(QPainter& painter, const QRect& area) const {
  const auto& colors = theme_->colors();
  const auto& recorded = *shown_.recorded;
  const auto upright = [&](std::size_t event, const QColor& color, Qt::PenStyle style, qreal width) {
    paintUpright(painter, area, xOf(event), color, style, width);
  };
  const auto flag = [&](std::int64_t event, const QString& text, const QColor& color) {
    if (event < 0) return;
    if (const int x = xOf(static_cast<std::size_t>(event)); x >= area.left() && x <= area.right())
      paintFlag(painter, area, x, text, color);
  };
  if (recorded.history.steps.size() < 40)
    for (const auto& step : recorded.history.steps)
      upright(static_cast<std::size_t>(step.from), colors.comment, Qt::DashLine, 1);
  if (recorded.failed >= 0) {
    upright(static_cast<std::size_t>(recorded.failed), colors.bad, Qt::SolidLine, 2);
    flag(recorded.failed, tr("failed"), colors.bad);
  } else {
    flag(recorded.history.peakEvent, tr("peak %1").arg(sizeText(recorded.history.peakBytes)), colors.text);
  }
  if (current()) upright(*current(), palette().color(QPalette::Active, QPalette::Highlight), Qt::SolidLine, 2);
}

std::size_t MemoryHistoryView::firstByKey() const {
  return static_cast<std::size_t>(std::max<std::int64_t>(shown_.recorded->first(), 0));
}

void MemoryHistoryView::keyPressEvent(QKeyEvent* event) {
  if (empty()) return ZoomedPlot::keyPressEvent(event);
  const auto& recorded = *shown_.recorded;
  switch (event->key()) {
    case Qt::Key_P: return pick(static_cast<std::size_t>(std::max<std::int64_t>(recorded.history.peakEvent, 0)));
    case Qt::Key_F:
      if (recorded.failed >= 0) pick(static_cast<std::size_t>(recorded.failed));
      return;
    default: ZoomedPlot::keyPressEvent(event);
  }
}

void MemoryHistoryView::resizeEvent(QResizeEvent* event) {
  ZoomedPlot::resizeEvent(event);
  askForColumns();
}

}  // namespace retrograd::views
