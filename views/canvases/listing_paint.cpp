#include <QPainter>
#include <QScrollBar>
#include <QTimer>

#include "core/trace/opaque.h"
#include "views/canvases/listing_view.h"
#include "views/content/token_color.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

void drawArrow(QPainter& painter, const QRectF& box, const QColor& fill, const QColor& line) {
  const qreal x = box.left(), y = box.center().y(), w = box.width(), h = box.height();
  const QPolygonF arrow{{{x, y - h * 0.18},
                         {x + w * 0.5, y - h * 0.18},
                         {x + w * 0.5, y - h * 0.42},
                         {x + w, y},
                         {x + w * 0.5, y + h * 0.42},
                         {x + w * 0.5, y + h * 0.18},
                         {x, y + h * 0.18}}};
  painter.setPen(QPen(line, 1));
  painter.setBrush(fill);
  painter.drawPolygon(arrow);
}

void drawDiamond(QPainter& painter, const QRectF& box, const QColor& color, bool filled) {
  const auto c = box.center();
  const qreal r = box.height() * 0.32;
  painter.setPen(QPen(color, 1.4));
  painter.setBrush(filled ? QBrush(color) : QBrush(Qt::NoBrush));
  painter.drawPolygon(QPolygonF{{c + QPointF(0, -r), c + QPointF(r, 0), c + QPointF(0, r), c + QPointF(-r, 0)}});
}

/// A disc; hollow while it is disabled, with a bar across where it has a condition.
void drawBreakpoint(QPainter& painter, const QRectF& box, const QColor& color, BreakpointMark mark) {
  painter.setPen(QPen(color, 1.4));
  painter.setBrush(mark == BreakpointMark::always ? QBrush(color) : QBrush(Qt::NoBrush));
  painter.drawEllipse(box.adjusted(0.7, 0.7, -0.7, -0.7));
  if (mark != BreakpointMark::conditional) return;
  const auto c = box.center();
  painter.fillRect(QRectF(c.x() - box.width() * 0.3, c.y() - 2.4, box.width() * 0.6, 1.6), color);
  painter.fillRect(QRectF(c.x() - box.width() * 0.3, c.y() + 0.8, box.width() * 0.6, 1.6), color);
}

/// A ribbon: a bookmark.
void drawBookmark(QPainter& painter, const QRectF& box, const QColor& color) {
  const auto c = box.center();
  const qreal w = box.width() * 0.28, h = box.height() * 0.46;
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawPolygon(QPolygonF{
      {c + QPointF(-w, -h), c + QPointF(w, -h), c + QPointF(w, h), c + QPointF(0, h * 0.45), c + QPointF(-w, h)}});
}

/// A triangle with an exclamation mark: NaN or Inf, or an op that failed.
void drawWarning(QPainter& painter, const QRectF& box, const QColor& color, const QColor& inner) {
  const auto c = box.center();
  const qreal r = box.height() * 0.4;
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawPolygon(
      QPolygonF{{c + QPointF(0, -r), c + QPointF(r * 1.05, r * 0.85), c + QPointF(-r * 1.05, r * 0.85)}});
  painter.setPen(QPen(inner, 1.3));
  painter.drawLine(c + QPointF(0, -r * 0.35), c + QPointF(0, r * 0.3));
  painter.drawPoint(c + QPointF(0, r * 0.62));
}

/// A floppy disk in outline: a saved value.
void drawSaved(QPainter& painter, const QRectF& box, const QColor& color) {
  const auto c = box.center();
  const qreal r = box.height() * 0.3;
  painter.setPen(QPen(color, 1.2));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(c.x() - r, c.y() - r, 2 * r, 2 * r));
  painter.fillRect(QRectF(c.x() - r * 0.5, c.y() - r, r, r * 0.8), color);
}

QString whyNoBackward(const Analysis& analysis) {
  if (analysis.refusedGradients.empty()) return tr("No backward: no result depends on what has a gradient");
  const auto op = analysis.refusedGradients.begin()->second;
  return tr("No backward: every gradient passes through an opaque op: %1")
      .arg(toQt(opaqueOpsText(*analysis.document, {&op, 1})));
}

}  // namespace

void ListingView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const auto& colors = context_.theme->colors();
  painter.fillRect(viewport()->rect(), colors.background);
  painter.fillRect(QRect(0, 0, gutterWidth(), viewport()->height()), colors.gutter);
  if (!document()) return;
  painter.setFont(viewport()->font());
  if (rows_.count() == 0) {
    painter.setPen(colors.gutterText);
    painter.drawText(
        viewport()->rect().adjusted(gutterWidth(), 0, 0, 0), Qt::AlignCenter | Qt::TextWordWrap,
        rows_.isFiltered() && !index().lines.empty()                         ? tr("No op passes the filter")
        : document()->analysis->derived() && kind_ == TraceKind::backward    ? whyNoBackward(*document()->analysis)
        : document()->analysis->derived() || kind_ == TraceKind::computation ? tr("No ops")
                                                                             : tr("Not derived: see Problems"));
    return;
  }
  const int first = verticalScrollBar()->value();
  const int last = std::min(rows_.count(), first + viewport()->height() / rowHeight_ + 2);
  for (int visible = first, top = 0; visible < last; top += heightOf(visible++)) {
    top += roomAbove(visible);
    paintRow(painter, visible, top);
  }
  paintStageBorders(painter, first, last);
  paintColumn(painter, first, last);
  painter.fillRect(QRect(gutterWidth() - 1, 0, 1, viewport()->height()), colors.border);
  const auto places = columns();
  if (places == shownColumns_ && columnRect() == shownNumbers_) return;
  shownNumbers_ = columnRect();
  shownColumns_ = places;
  Q_EMIT columnsMoved();
  viewport()->update();  // lines above were painted before those below were measured
  QTimer::singleShot(0, this, &ListingView::updateScrollBars);
}

void ListingView::paintRow(QPainter& painter, int visible, int top) const {
  const QRect rect(0, top, viewport()->width(), heightOf(visible)), line(0, top, rect.width(), rowHeight_);
  const auto relation = relationOf(visible);
  paintBackground(painter, visible, rect, relation);
  painter.save();
  painter.setClipRect(QRect(gutterWidth(), 0, viewport()->width(), viewport()->height()));
  paintFold(painter, visible, line);
  paintText(painter, visible, line);
  paintColumns(painter, visible, line);
  painter.restore();
  paintGutter(painter, visible, line, relation);
  paintStage(painter, visible, rect);
}

void ListingView::paintBackground(QPainter& painter, int visible, const QRect& rect, Relation relation) const {
  const auto& colors = context_.theme->colors();
  const auto text = rect.adjusted(gutterWidth(), 0, 0, 0);
  const auto& now = context_.execution->now();
  if (const auto op = opAt(visible); op && now.current == op && now.position > 0 && relation != Relation::selected) {
    auto color = colors.executionLine;
    color.setAlphaF(0.22f);
    painter.fillRect(text, color);
  }
  switch (relation) {
    case Relation::selected: {
      const auto controls = controlColorsOf(context_.theme->dark(), context_.theme->highContrast());
      painter.fillRect(text, hasFocus() ? colors.selected : controls.idleSelection);
      painter.fillRect(QRect(text.left(), text.top(), tokens::selectionBar, text.height()),
                       hasFocus() ? palette().color(QPalette::Highlight) : controls.idleBar);
      break;
    }
    case Relation::origin: painter.fillRect(text, colors.origin); break;
    case Relation::derived: painter.fillRect(text, colors.derived); break;
    case Relation::sibling: painter.fillRect(text, colors.sibling); break;
    case Relation::way: painter.fillRect(text, colors.error); break;
    case Relation::none: break;
  }
  if (isMarked(visible)) painter.fillRect(text, colors.selected);
  if (visible == cursor_ && hasFocus()) {
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(text.adjusted(0, 0, -1, -1));
  }
}

void ListingView::paintGutter(QPainter& painter, int visible, const QRect& rect, Relation relation) const {
  const auto& colors = context_.theme->colors();
  const auto& now = context_.execution->now();
  const auto op = opAt(visible);
  // Two cells: breakpoint and place of execution; what the op's values are.
  const qreal size = marksWidth() / 2.0;
  const auto cell = [&](int column) {
    return QRectF(rect.left() + column * size, rect.top() + (rect.height() - size) / 2, size, size)
        .adjusted(1, 1, -1, -1);
  };
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const auto row = rows_.rowAt(visible);
  const auto shows = [&](BoundSymbolId other) {
    return op ? other == op : rows_.folded(row) && rowOf(other) == visible;
  };
  auto breakpoint = context_.execution->mark(op);
  if (!op && rows_.folded(row))
    for (const auto& [other, mark] : context_.execution->marks())
      if (shows(other)) breakpoint = std::max(breakpoint, mark);
  if (breakpoint != BreakpointMark::none) drawBreakpoint(painter, cell(0), colors.breakpoint, breakpoint);
  if (now.current && shows(now.current)) drawArrow(painter, cell(0), colors.execution, colors.background);
  const auto* note = context_.notes->at(opForKey(visible));
  bool bookmarked = note && note->bookmark;
  if (!op && rows_.folded(row))
    for (const auto& other : context_.notes->notes())
      bookmarked = bookmarked || (other.note.bookmark && other.op && shows(other.op));
  const auto& numbers = context_.controller->ahead().numbers();
  const bool failed = (now.failed && shows(now.failed)) || (numbers.failed() && shows(numbers.failed()));
  const bool bad = op ? now.bad.contains(op) || numbers.isBad(op) : rows_.folded(row) && badBelow(row);
  const auto outputs = op ? index().document().outputs(op) : std::span<const ValueId>();
  const bool first =
      breakpoint == BreakpointMark::none && !(now.current && shows(now.current));  // the first cell is free
  if (bookmarked) drawBookmark(painter, cell(first ? 0 : 1), colors.ownWords);
  const auto* finding = board_.at(op);
  if (failed || bad) drawWarning(painter, cell(1), failed ? colors.breakpoint : colors.bad, colors.background);
  else if (finding)
    drawWarning(painter, cell(1), finding->severity == Severity::fault ? colors.bad : colors.ownWords,
                colors.background);
  else if ((first || !bookmarked) && kind_ != TraceKind::backward &&
           std::ranges::any_of(outputs, [&](ValueId v) { return document()->saved.contains(v); }))
    drawSaved(painter, cell(1), colors.saved);
  // Before the text, where a header has its fold mark: that one shows it in the gutter.
  const auto before =
      op ? QRectF(textLeft(visible) - size - 2, cell(1).top(), cell(1).width(), cell(1).height()) : cell(1);
  if (relation == Relation::origin) drawDiamond(painter, before, colors.originMark, true);
  if (relation == Relation::derived) drawDiamond(painter, before, colors.derivedMark, false);
  painter.restore();
}

void ListingView::paintFold(QPainter& painter, int visible, const QRect& rect) const {
  const auto row = rows_.rowAt(visible);
  if (!outline().foldable(row)) return;
  const QRectF box(textLeft(visible) - rowHeight_, rect.top(), rowHeight_, rowHeight_);
  const auto c = box.center();
  const qreal r = rowHeight_ * 0.22;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(context_.theme->colors().comment, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  if (rows_.folded(row))
    painter.drawPolyline(QPolygonF{{c + QPointF(-r / 2, -r), c + QPointF(r / 2, 0), c + QPointF(-r / 2, r)}});
  else painter.drawPolyline(QPolygonF{{c + QPointF(-r, -r / 2), c + QPointF(0, r / 2), c + QPointF(r, -r / 2)}});
  painter.restore();
}

}  // namespace retrograd::views
