#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "core/layout/labels.h"
#include "views/canvases/graph_paint.h"
#include "views/canvases/graph_view.h"
#include "views/models/format.h"

namespace retrograd::views {
namespace {

constexpr double dimmedShare = 0.35;  ///< of its colours that a box keeps which the filter does not let through

QPainterPath pathOf(const std::vector<QPointF>& points, bool across) {
  QPainterPath path(points.front());
  if (across) {
    const auto a = points.front(), b = points.back();
    const double reach = std::max(14.0, std::abs(b.x() - a.x()) * 0.45);
    path.cubicTo(a + QPointF(reach, 0), b - QPointF(reach, 0), b);
    return path;
  }
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto a = points[i - 1], b = points[i];
    if (std::abs(a.x() - b.x()) < 0.5) {
      path.lineTo(b);
    } else {
      const double middle = (a.y() + b.y()) / 2;
      path.cubicTo({a.x(), middle}, {b.x(), middle}, b);
    }
  }
  return path;
}

/// A head at `tip`, pointing along `way` (a unit vector along an axis).
void drawHead(QPainter& painter, const QPointF& tip, const QPointF& way, double size, const QColor& color) {
  const QPointF side(-way.y(), way.x());
  const QPolygonF head{{tip, tip - way * size + side * size * 0.55, tip - way * size - side * size * 0.55}};
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawPolygon(head);
}

void drawChevron(QPainter& painter, const QPointF& c, double r, bool open, const QColor& color) {
  painter.setPen(QPen(color, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.setBrush(Qt::NoBrush);
  if (open)
    painter.drawPolyline(QPolygonF{{c + QPointF(-r, -r / 2), c + QPointF(0, r / 2), c + QPointF(r, -r / 2)}});
  else
    painter.drawPolyline(QPolygonF{{c + QPointF(-r / 2, -r), c + QPointF(r / 2, 0), c + QPointF(-r / 2, r)}});
}

QString badgeText(const layout::Badge& badge) {
  const auto text = toQt(badge.text);
  switch (badge.kind) {
    case layout::Badge::Kind::parameter:
      return QStringLiteral("\u25aa") + text;
    case layout::Badge::Kind::buffer:
      return QStringLiteral("\u25ab") + text;
    case layout::Badge::Kind::constant:
      return QStringLiteral("#") + text;
    case layout::Badge::Kind::input:
      return QStringLiteral("\u25b8") + text;
    case layout::Badge::Kind::cotangent:
      return QStringLiteral("\u25b4") + text;
    case layout::Badge::Kind::saved:
      return QStringLiteral("\u25c7") + text;
    case layout::Badge::Kind::gradient:
      return QStringLiteral("\u2202") + text;
    case layout::Badge::Kind::output:
      return QStringLiteral("\u2192") + text;
  }
  return text;
}

}  // namespace

void GraphView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), colors_.canvas);
  if (!picture_) {
    painter.setPen(colors_.faint);
    const auto text = !problem_.isEmpty() ? problem_ : busy_ ? tr("Laying out ...") : document_ ? tr("No ops") : QString();
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, text);
    if (busy_) paintBusy(painter);
    return;
  }
  const auto area = visibleArea();
  picture_->grid.boxesIn(area, boxesHere_);
  switch (detail()) {
    case Detail::full:
      picture_->grid.edgesIn(area, edgesHere_);
      painter.setRenderHint(QPainter::Antialiasing, still_);
      paintFull(painter);
      break;
    case Detail::batched:
      picture_->grid.edgesIn(area, edgesHere_);
      paintBatched(painter);
      break;
    case Detail::pixels:
      paintPixels(painter);
      break;
  }
  painter.setRenderHint(QPainter::Antialiasing, true);
  paintHighlights(painter);
  paintLanes(painter);
  paintMinimap(painter);
  paintLegend(painter);
  if (busy_) paintBusy(painter);
  if (hasFocus()) {
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

Role GraphView::roleOf(const layout::SceneBox& box) const {
  const auto op = layout::onlyOp(*scene().tree, box.node, box.lane);
  if (op) return scene().tree->document().boundSymbol(op).origin.role;
  return Role::none;
}

GraphColors::Fill GraphView::fillFor(const layout::SceneBox& box) const {
  auto fill = fillOf(colors_, roleOf(box), box.lane);
  if (overlay_)
    if (const auto color = overlay_->fill(box.node, box.lane); color.isValid()) fill.fill = color;
  if (isDimmed(box))
    for (auto* color : {&fill.fill, &fill.line, &fill.accent}) *color = mixed(*color, colors_.canvas, dimmedShare);
  return fill;
}

void GraphView::paintFull(QPainter& painter) {
  for (auto i : boxesHere_)
    if (box(i).open) paintFrame(painter, i);
  // Origin links below, saved tensors above: those are few and asked for most.
  for (auto kind : {layout::EdgeKind::origin, layout::EdgeKind::data, layout::EdgeKind::gradient, layout::EdgeKind::accumulation, layout::EdgeKind::saved}) {
    if (!edgesShown(kind)) continue;
    for (auto i : edgesHere_)
      if (const auto& edge = scene().edges[static_cast<std::size_t>(i)]; edge.kind == kind && !std::binary_search(reach_.edges.begin(), reach_.edges.end(), i))
        paintEdge(painter, edge, false);
  }
  paintFrameTitles(painter, boxesHere_);
  for (auto i : boxesHere_)
    if (!box(i).open) paintBox(painter, i);
  for (auto i : reach_.edges)
    if (const auto& edge = scene().edges[static_cast<std::size_t>(i)]; edgesShown(edge.kind) || edge.kind == layout::EdgeKind::saved) paintEdge(painter, edge, true);
}

void GraphView::paintFrame(QPainter& painter, int i) const {
  const auto rect = toScreen(toQt(box(i).rect));
  painter.setPen(QPen(colors_.frameLine, 1));
  painter.setBrush(colors_.frame);
  painter.drawRoundedRect(rect, corner, corner);
}

void GraphView::paintFrameTitles(QPainter& painter, const std::vector<std::int32_t>& boxes) const {
  auto font = titleFont_;
  font.setPixelSize(std::clamp(static_cast<int>(std::lround(12 * scale_)), 10, 15));
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  std::vector<QRectF> placed;
  for (auto i : boxes) {
    if (!box(i).open) continue;
    const auto rect = toScreen(toQt(box(i).rect));
    if (layout::frame::header * scale_ < 8) {
      // There is no room for a title inside; modules of the model have theirs beside them.
      if (scene().tree->node(box(i).node).parent == 0 && rect.height() > metrics.height()) {
        const bool left = box(i).lane == layout::Lane::forward;
        const auto words = toQt(scene().tree->label(box(i).node));
        const double x = left ? rect.left() - metrics.horizontalAdvance(words) - 8 : rect.right() + 8;
        painter.setPen(i == current_ ? colors_.selected : colors_.frameText);
        painter.drawText(QPointF(x, std::max(rect.top(), 0.0) + metrics.ascent() + 2), words);
      }
      continue;
    }
    if (rect.height() < metrics.height() + 8 || rect.width() < 48) continue;
    // A frame that begins above the view keeps its title in sight.
    const double sight = scene().tree->ladder() ? lanesHeight : 0;
    const double top = std::clamp(sight, rect.top(), std::max(rect.top(), rect.bottom() - metrics.height() - 8));
    const QRectF line(rect.left() + 1, top + 1, rect.width() - 2, metrics.height() + 6);
    // Frames in one another that all begin above the view have their titles side by side.
    double left = line.left() + 7;
    for (const auto& other : placed)
      if (other.intersects(QRectF(left, line.top() + 2, 40, line.height() - 3))) left = std::max(left, other.right() + 4);
    const double room = line.right() - 24 - left;
    if (room < 24) continue;
    const auto title = metrics.elidedText(toQt(layout::boxText(*scene().tree, box(i).node, box(i).lane).title), Qt::ElideRight, room);
    const QRectF area(left, line.top() + 2, metrics.horizontalAdvance(title) + 6, line.height() - 3);
    placed.push_back(area);
    painter.fillRect(area, faded(colors_.canvas, 0.85));
    painter.setPen(i == current_ ? colors_.selected : colors_.frameText);
    painter.drawText(QPointF(left + 3, line.top() + 3 + metrics.ascent()), title);
    drawChevron(painter, {line.right() - 12, line.center().y()}, 3.5, true, colors_.faint);
  }
}

const GraphView::PreparedText& GraphView::textFor(int i) const {
  if (const auto* known = texts_.object(i)) return *known;
  const auto text = layout::boxText(*scene().tree, box(i).node, box(i).lane);
  const double room = box(i).rect.width - 2 * layout::box::padX - (scene().tree->canOpen(box(i).node) ? layout::box::chevron : 0) + 4;
  auto* made = new PreparedText;
  const auto prepare = [&](QStaticText& target, const QString& words, const QFont& font) {
    target.setTextFormat(Qt::PlainText);
    target.setText(QFontMetricsF(font).elidedText(words, Qt::ElideRight, room));
    target.setPerformanceHint(QStaticText::AggressiveCaching);
    target.prepare({}, font);
  };
  prepare(made->title, toQt(text.title), titleFont_);
  const auto told = overlay_ ? overlay_->text(box(i).node, box(i).lane) : QString();
  prepare(made->detail, told.isEmpty() ? toQt(text.detail) : told, detailFont_);
  QStringList badges;
  for (const auto& badge : text.badges) badges << badgeText(badge);
  made->hasBadges = !badges.isEmpty();
  prepare(made->badges, badges.join(QLatin1Char(' ')), detailFont_);
  texts_.insert(i, made);
  return *made;
}

void GraphView::paintBox(QPainter& painter, int i) const {
  const auto& b = box(i);
  const auto rect = toScreen(toQt(b.rect));
  const auto& tree = *scene().tree;
  const auto fill = fillFor(b);
  const bool group = tree.canOpen(b.node);
  const auto op = opOf(i);
  const auto relation = op ? context_.selection->relation(op) : Relation::none;
  const auto& theme = context_.theme->colors();

  painter.setPen(QPen(fill.line, 1));
  if (group) {
    // A card with another below it: there is more inside.
    painter.setBrush(fill.fill);
    painter.drawRoundedRect(rect.translated(3 * scale_, 3 * scale_), corner, corner);
  }
  auto ground = fill.fill;
  if (relation == Relation::origin) ground = theme.origin;
  if (relation == Relation::derived) ground = theme.derived;
  if (relation == Relation::selected) ground = theme.selected;
  painter.setBrush(ground);
  painter.drawRoundedRect(rect, corner, corner);
  // The role as a bar on the outer side.
  const double bar = 4 * scale_;
  const QRectF strip(b.lane == layout::Lane::backward ? rect.right() - bar - 1 : rect.left() + 1, rect.top() + corner / 2, bar, rect.height() - corner);
  painter.fillRect(strip, fill.accent);

  const auto& text = textFor(i);
  const bool dimmed = isDimmed(b);
  const auto ink = [&](const QColor& color) { return dimmed ? mixed(color, colors_.canvas, dimmedShare) : color; };
  painter.save();
  painter.translate(rect.topLeft());
  painter.scale(scale_, scale_);
  painter.setFont(titleFont_);
  painter.setPen(ink(colors_.text));
  double y = layout::box::padY - 1;
  painter.drawStaticText(QPointF(layout::box::padX, y), text.title);
  y += layout::box::titleHeight;
  painter.setFont(detailFont_);
  painter.setPen(ink(colors_.faint));
  painter.drawStaticText(QPointF(layout::box::padX, y), text.detail);
  y += layout::box::detailHeight;
  if (text.hasBadges) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(dimmed ? faded(colors_.badge, dimmedShare) : colors_.badge);
    painter.drawRoundedRect(QRectF(layout::box::padX - 4, y + 1, text.badges.size().width() + 8, layout::box::badgeHeight - 2), 4, 4);
    painter.setPen(ink(colors_.badgeText));
    painter.drawStaticText(QPointF(layout::box::padX, y + 2), text.badges);
  }
  painter.restore();
  if (group) drawChevron(painter, {rect.right() - 12 * scale_ - (b.lane == layout::Lane::backward ? bar : 0), rect.top() + 13 * scale_}, 3.5 * scale_, false, colors_.faint);
  paintMarks(painter, i, rect);
}

/// What is where on a box: breakpoint at the outer top corner, NaN at the inner one, the op that runs next as an arrow from outside, origin links as diamonds.
void GraphView::paintMarks(QPainter& painter, int i, const QRectF& rect) const {
  const auto& theme = context_.theme->colors();
  const auto& now = context_.execution->now();
  const auto op = opOf(i);
  const auto node = box(i).node;
  const auto& tree = *scene().tree;
  const auto holds = [&](BoundSymbolId other) {
    const auto at = tree.nodeOf(other);
    return at >= 0 && tree.within(at, node) && tree.node(at).lane == box(i).lane;
  };
  const double size = std::max(7.0, 11 * scale_);
  auto mark = context_.execution->mark(op);
  if (!op)
    for (const auto& [other, kind] : context_.execution->marks())
      if (holds(other)) mark = std::max(mark, kind);
  if (mark != BreakpointMark::none) {
    painter.setPen(QPen(theme.breakpoint, 1.5));
    painter.setBrush(mark == BreakpointMark::disabled ? QBrush(colors_.canvas) : QBrush(theme.breakpoint));
    const QRectF disc(rect.left() - size / 2, rect.top() - size / 2, size, size);
    painter.drawEllipse(disc);
    if (mark == BreakpointMark::conditional)
      painter.fillRect(QRectF(disc.left() + size * 0.25, disc.center().y() - 1, size * 0.5, 2), colors_.canvas);
  }
  const auto& badValues = context_.execution->badValues();
  const bool bad = std::any_of(now.bad.begin(), now.bad.end(), holds) || (now.failed && holds(now.failed)) ||
                   std::any_of(badValues.begin(), badValues.end(), [&](ValueId v) { return holds(tree.document().value(v).producer); });
  if (bad) {
    const QPointF c(rect.right() - size / 2, rect.top());
    painter.setPen(QPen(colors_.canvas, 1));
    painter.setBrush(theme.bad);
    painter.drawPolygon(QPolygonF{{c + QPointF(0, -size * 0.6), c + QPointF(size * 0.7, size * 0.5), c + QPointF(-size * 0.7, size * 0.5)}});
  }
  if (now.current && holds(now.current)) {
    painter.setPen(QPen(theme.executionLine, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(rect.adjusted(-3, -3, 3, 3), corner + 2, corner + 2);
    const QPointF tip(rect.left() - 5, rect.center().y());
    const double s = std::max(8.0, 12 * scale_);
    painter.setPen(QPen(colors_.canvas, 1));
    painter.setBrush(theme.execution);
    painter.drawPolygon(QPolygonF{{tip, tip + QPointF(-s, -s * 0.6), tip + QPointF(-s, s * 0.6)}});
  }
  const auto relation = op ? context_.selection->relation(op) : Relation::none;
  if (relation == Relation::origin || relation == Relation::derived) {
    const auto color = relation == Relation::origin ? theme.originMark : theme.derivedMark;
    const QPointF c(rect.left(), rect.center().y());
    const double r = size * 0.5;
    painter.setPen(QPen(color, 1.5));
    painter.setBrush(relation == Relation::origin ? QBrush(color) : QBrush(colors_.canvas));
    painter.drawPolygon(QPolygonF{{c + QPointF(0, -r), c + QPointF(r, 0), c + QPointF(0, r), c + QPointF(-r, 0)}});
  }
}

void GraphView::paintEdge(QPainter& painter, const layout::SceneEdge& edge, bool lit) const {
  const bool across = edge.kind == layout::EdgeKind::saved || edge.kind == layout::EdgeKind::origin;
  std::vector<QPointF> points;
  for (const auto& p : scene().path(edge)) points.push_back(toScreen(toQt(p)));
  auto pen = edgePen(colors_, edge.kind, lit ? 2.4 : edge.count > 1 ? 1.8 : 1.3);
  const bool background = !lit && hovered_ >= 0 && !reach_.edges.empty();
  if (background) pen.setColor(faded(pen.color(), 0.4));
  if (!lit && across) pen.setColor(faded(pen.color(), 0.8));
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(pathOf(points, across));
  const double size = std::max(4.0, 7.5 * scale_) * (lit ? 1.2 : 1);
  const auto direction = [&](const QPointF& from, const QPointF& to) {
    if (across) return QPointF(to.x() > from.x() ? 1 : -1, 0);
    return QPointF(0, to.y() > from.y() ? 1 : -1);
  };
  if (edge.arrowAtEnd) drawHead(painter, points.back(), direction(points[points.size() - 2], points.back()), size, pen.color());
  if (edge.arrowAtBegin && edge.kind != layout::EdgeKind::origin) drawHead(painter, points.front(), direction(points[1], points.front()), size, pen.color());

  auto label = overlay_ ? overlay_->edgeText(scene(), static_cast<std::int32_t>(&edge - scene().edges.data())) : QString();
  const bool crosses = !label.isEmpty();
  if (edge.kind == layout::EdgeKind::saved && edge.bytes > 0 && (lit || edge.flow < 0)) label = bytesText(edge.bytes);
  if (label.isEmpty() && lit && edge.count > 1) label = tr("%n values", nullptr, static_cast<int>(edge.count));
  const double room = across ? points.back().x() - points.front().x() : 1e9;
  if (label.isEmpty() || scale_ < 0.55) return;
  auto font = detailFont_;
  font.setPixelSize(10);
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  const double width = metrics.horizontalAdvance(label);
  if (width + 24 > room) return;
  const auto middle = pathOf(points, across).pointAtPercent(0.5);
  const QRectF tag(middle.x() - width / 2 - 3, middle.y() - metrics.height() / 2, width + 6, metrics.height());
  painter.fillRect(tag, colors_.canvas);
  painter.setPen(crosses ? colors_.text : pen.color());
  painter.setBrush(Qt::NoBrush);
  if (crosses) painter.drawRect(tag);
  painter.drawText(tag, Qt::AlignCenter, label);
}

void GraphView::paintBatched(QPainter& painter) {
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setPen(QPen(colors_.frameLine, 1));
  painter.setBrush(colors_.frame);
  QVector<QRectF> frames;
  for (auto i : boxesHere_)
    if (box(i).open) frames.append(toScreen(toQt(box(i).rect)));
  painter.drawRects(frames);
  std::array<QVector<QLineF>, layout::edgeKindCount> lines;
  for (auto i : edgesHere_) {
    const auto& edge = scene().edges[static_cast<std::size_t>(i)];
    if (!edgesShown(edge.kind)) continue;
    const auto path = scene().path(edge);
    for (std::size_t k = 1; k < path.size(); ++k) lines[static_cast<std::size_t>(edge.kind)].append(QLineF(toScreen(toQt(path[k - 1])), toScreen(toQt(path[k]))));
  }
  for (std::size_t kind = 0; kind < lines.size(); ++kind) {
    // Without dashes: they cost more than all the rest.
    auto color = colors_.edge[kind];
    painter.setPen(QPen(faded(color, 0.7), 0));
    painter.drawLines(lines[kind]);
  }
  struct Batch {
    GraphColors::Fill fill;
    QVector<QRectF> rects, bars;
  };
  std::map<std::pair<QRgb, QRgb>, Batch> batches;
  for (auto i : boxesHere_) {
    const auto& b = box(i);
    if (b.open) continue;
    const auto fill = fillFor(b);
    auto& batch = batches[{fill.fill.rgb(), fill.accent.rgb()}];
    batch.fill = fill;
    const auto r = toScreen(toQt(b.rect));
    batch.rects.append(r);
    batch.bars.append({b.lane == layout::Lane::forward ? r.left() : r.right() - 2, r.top(), 2, r.height()});
  }
  for (const auto& [key, batch] : batches) {
    painter.setPen(QPen(batch.fill.line, 0));
    painter.setBrush(batch.fill.fill);
    painter.drawRects(batch.rects);
    painter.setPen(Qt::NoPen);
    painter.setBrush(batch.fill.accent);
    painter.drawRects(batch.bars);
  }
  paintFrameTitles(painter, boxesHere_);
  auto font = detailFont_;
  font.setPixelSize(10);
  painter.setFont(font);
  painter.setPen(colors_.text);
  const QFontMetricsF metrics(font);
  for (auto i : boxesHere_) {
    const auto rect = toScreen(toQt(box(i).rect));
    if (box(i).open || rect.height() < 11 || rect.width() < 44) continue;
    // In full, or else the module alone, or nothing: half a word helps nobody.
    auto title = toQt(layout::boxText(*scene().tree, box(i).node, box(i).lane).title);
    if (metrics.horizontalAdvance(title) > rect.width() - 9) title = toQt(scene().tree->label(box(i).node));
    if (metrics.horizontalAdvance(title) > rect.width() - 9) continue;
    painter.setPen(isDimmed(i) ? colors_.faint : colors_.text);
    painter.drawText(rect.adjusted(5, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, title);
  }
  for (auto i : reach_.edges) {
    const auto& edge = scene().edges[static_cast<std::size_t>(i)];
    const auto path = scene().path(edge);
    painter.setPen(QPen(colors_.edge[static_cast<std::size_t>(edge.kind)], 2));
    for (std::size_t k = 1; k < path.size(); ++k) painter.drawLine(QLineF(toScreen(toQt(path[k - 1])), toScreen(toQt(path[k]))));
  }
}

void GraphView::paintPixels(QPainter& painter) {
  const auto ratio = devicePixelRatioF();
  const auto wanted = size() * ratio;
  if (pixels_.size() != wanted) {
    pixels_ = QImage(wanted, QImage::Format_RGB32);
    pixels_.setDevicePixelRatio(ratio);
  }
  pixels_.fill(colors_.canvas);
  const auto place = [&](const layout::SceneBox& b) {
    const auto r = toScreen(toQt(b.rect));
    return QRectF(r.topLeft() * ratio, r.size() * ratio);
  };
  for (auto i : boxesHere_) {
    const auto& b = box(i);
    const auto r = place(b);
    if (b.open) {
      if (r.width() < 6) continue;
      const auto line = colors_.frameLine.rgb();
      fillPixels(pixels_, {r.left(), r.top(), r.width(), 1}, line);
      fillPixels(pixels_, {r.left(), r.bottom(), r.width(), 1}, line);
      fillPixels(pixels_, {r.left(), r.top(), 1, r.height()}, line);
      fillPixels(pixels_, {r.right(), r.top(), 1, r.height()}, line);
    } else {
      const auto fill = fillFor(b);
      fillPixels(pixels_, r, (overlay_ ? fill.fill : fill.accent).rgb());
    }
  }
  painter.drawImage(QPointF(0, 0), pixels_);
  paintFrameTitles(painter, boxesHere_);
}

void GraphView::paintHighlights(QPainter& painter) const {
  const auto outline = [&](int i, const QColor& color, double width, bool dashed) {
    auto rect = toScreen(toQt(box(i).rect)).adjusted(-2, -2, 2, 2);
    if (rect.width() < 7) rect.adjust(-4, -4, 4, 4);
    painter.setPen(QPen(color, width, dashed ? Qt::DashLine : Qt::SolidLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(rect, corner + 1, corner + 1);
  };
  const auto selected = boxOf(context_.selection->op());
  if (selected >= 0) outline(selected, colors_.selected, 2.4, false);
  if (current_ >= 0 && current_ != selected) outline(current_, colors_.selected, 1.6, true);
  if (detail() != Detail::full)
    if (const auto now = boxOf(context_.execution->now().current); now >= 0) outline(now, context_.theme->colors().executionLine, 2, false);
}

}  // namespace retrograd::views
