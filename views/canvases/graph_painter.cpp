#include "views/canvases/graph_painter.h"

#include <algorithm>
#include <cmath>

#include "views/canvases/graph_grid.h"
#include "views/canvases/graph_paint.h"
#include "views/text/format.h"
#include "views/theme/theme_colors.h"

namespace retrograd::views {
namespace {

constexpr double readable = 0.62;     ///< scale below which text in its place would be too small
constexpr double dimmedShare = 0.35;  ///< of its colours that a box keeps which the filter does not let through

void drawChevron(QPainter& painter, const QPointF& c, double r, bool open, const QColor& color) {
  painter.setPen(QPen(color, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.setBrush(Qt::NoBrush);
  if (open) painter.drawPolyline(QPolygonF{{c + QPointF(-r, -r / 2), c + QPointF(0, r / 2), c + QPointF(r, -r / 2)}});
  else painter.drawPolyline(QPolygonF{{c + QPointF(-r / 2, -r), c + QPointF(r / 2, 0), c + QPointF(-r / 2, r)}});
}

QString badgeText(const layout::Badge& badge) {
  auto text = toQt(badge.text);
  switch (badge.kind) {
    case layout::Badge::Kind::parameter: return QStringLiteral("\u25aa") + text;
    case layout::Badge::Kind::buffer: return QStringLiteral("\u25ab") + text;
    case layout::Badge::Kind::constant: return QStringLiteral("#") + text;
    case layout::Badge::Kind::input: return QStringLiteral("\u25b8") + text;
    case layout::Badge::Kind::cotangent: return QStringLiteral("\u25b4") + text;
    case layout::Badge::Kind::saved: return QStringLiteral("\u25c7") + text;
    case layout::Badge::Kind::gradient: return QStringLiteral("\u2202") + text;
    case layout::Badge::Kind::output: return QStringLiteral("\u2192") + text;
  }
  return text;
}

}  // namespace

GraphLook graphLook(bool dark, bool highContrast) {
  GraphLook look;
  look.colors = graphColors(dark, highContrast);
  look.theme = colorsOf(dark, highContrast);
  look.title = look.detail = Theme::codeFont();
  look.title.setPixelSize(12);
  look.title.setWeight(QFont::DemiBold);
  look.detail.setPixelSize(10);
  return look;
}

void GraphPainter::all(QPainter& painter, const std::vector<std::int32_t>& boxes,
                       const std::vector<std::int32_t>& edges, const Progress& progress) const {
  const auto titles = titleLines(boxes);
  const auto isLit = [&](std::int32_t i) { return lens_.reach && std::ranges::binary_search(lens_.reach->edges, i); };
  const double steps = static_cast<double>(boxes.size() + edges.size()) + 1;
  double done = 0;
  const auto step = [&] { progress.at("drawing", ++done / steps); };
  for (auto i : boxes)
    if (box(i).open) frame(painter, i);
  // Origin links below, saved tensors above: those are few and asked for most.
  for (auto kind : {layout::EdgeKind::origin, layout::EdgeKind::data, layout::EdgeKind::gradient,
                    layout::EdgeKind::accumulation, layout::EdgeKind::saved}) {
    if (!look_.shown[kind]) continue;
    for (auto i : edges) {
      const auto& one = scene().edges[i];
      if (one.kind != kind || isLit(i)) continue;
      edge(painter, one, false);
      edgeLabel(painter, one, false, titles);
      step();
    }
  }
  for (auto i : boxes) {
    if (box(i).open) continue;
    closedBox(painter, i);
    step();
  }
  const auto eachLit = [&](auto draw) {
    for (auto i : edges)
      if (const auto& one = scene().edges[i];
          isLit(i) && (look_.shown[one.kind] || one.kind == layout::EdgeKind::saved))
        draw(one);
  };
  // Titles are above lit lines, and the labels of those above all.
  eachLit([&](const layout::SceneEdge& one) { edge(painter, one, true); });
  frameTitles(painter, boxes);
  eachLit([&](const layout::SceneEdge& one) { edgeLabel(painter, one, true, titles); });
  stuckTitles(painter, boxes);
}

Role GraphPainter::roleOf(const layout::SceneBox& box) const {
  const auto op = layout::onlyOp(*scene().tree, box.node, box.lane);
  if (op) return scene().tree->document().boundSymbol(op).origin.role;
  return Role::none;
}

GraphColors::Fill GraphPainter::fillFor(const layout::SceneBox& box) const {
  auto fill = fillOf(look_.colors, roleOf(box), box.lane);
  if (look_.overlay)
    if (const auto color = look_.overlay->fill(box.node, box.lane); color.isValid()) fill.fill = color;
  if (look_.isDimmed(box))
    for (auto* color : {&fill.fill, &fill.line, &fill.accent}) *color = mixed(*color, look_.colors.canvas, dimmedShare);
  return fill;
}

QRgb GraphPainter::pixelFor(const layout::SceneBox& box) const {
  auto color = look_.overlay ? look_.overlay->fill(box.node, box.lane) : QColor();
  if (!color.isValid()) {
    const auto fill = fillOf(look_.colors, roleOf(box), box.lane);
    color = look_.overlay ? fill.fill : fill.accent;
  }
  return (look_.isDimmed(box) ? mixed(color, look_.colors.canvas, dimmedShare) : color).rgb();
}

void GraphPainter::frame(QPainter& painter, int i) const {
  const auto rect = toScreen(toQt(box(i).rect));
  painter.setPen(QPen(look_.colors.frameLine, 1));
  painter.setBrush(look_.colors.frame);
  painter.drawRoundedRect(rect, corner, corner);
}

QFont GraphPainter::frameFont() const {
  auto font = look_.title;
  font.setPixelSize(std::clamp(static_cast<int>(std::lround(12 * lens_.scale)), 10, 15));
  return font;
}

std::vector<QRectF> GraphPainter::titleLines(const std::vector<std::int32_t>& boxes) const {
  std::vector<QRectF> lines;
  if (layout::frame::header * lens_.scale < 8) return lines;
  const QFontMetricsF metrics(frameFont());
  for (auto i : boxes) {
    if (!box(i).open) continue;
    const auto rect = toScreen(toQt(box(i).rect));
    lines.push_back({rect.left(), rect.top(), rect.width(), metrics.height() + 6});
  }
  return lines;
}

void GraphPainter::frameTitles(QPainter& painter, const std::vector<std::int32_t>& boxes) const {
  const auto font = frameFont();
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  for (auto i : boxes) {
    if (!box(i).open) continue;
    const auto rect = toScreen(toQt(box(i).rect));
    if (layout::frame::header * lens_.scale < 8) {
      // There is no room for a title inside; modules of the model have theirs next to them.
      if (scene().tree->node(box(i).node).parent == 0 && rect.height() > metrics.height()) {
        const bool left = box(i).lane == layout::Lane::forward;
        const auto words = toQt(scene().tree->label(box(i).node));
        const double x = left ? rect.left() - metrics.horizontalAdvance(words) - 8 : rect.right() + 8;
        painter.setPen(i == lens_.current ? look_.colors.selected : look_.colors.frameText);
        painter.drawText(QPointF(x, std::max(rect.top(), 0.0) + metrics.ascent() + 2), words);
      }
      continue;
    }
    if (rect.height() < metrics.height() + 8 || rect.width() < 48 || stuckLine(i, metrics)) continue;
    const QRectF line(rect.left() + 1, rect.top() + 1, rect.width() - 2, metrics.height() + 6);
    const auto title = metrics.elidedText(toQt(layout::boxText(*scene().tree, box(i).node, box(i).lane).title),
                                          Qt::ElideRight, line.width() - 31);
    painter.fillRect(QRectF(line.left() + 7, line.top() + 2, metrics.horizontalAdvance(title) + 6, line.height() - 3),
                     faded(look_.colors.canvas, 0.85));
    painter.setPen(i == lens_.current ? look_.colors.selected : look_.colors.frameText);
    painter.drawText(QPointF(line.left() + 10, line.top() + 3 + metrics.ascent()), title);
    drawChevron(painter, {line.right() - 12, line.center().y()}, 3.5, true, look_.colors.faint);
  }
}

std::optional<QRectF> GraphPainter::stuckLine(int i, const QFontMetricsF& metrics) const {
  const auto rect = toScreen(toQt(box(i).rect));
  const double sight = scene().tree->ladder() ? lanesHeight : 0;
  if (rect.top() >= sight || rect.bottom() < sight + metrics.height() + 8) return {};
  return QRectF(rect.left() + 1, sight + 1, rect.width() - 2, metrics.height() + 6);
}

void GraphPainter::stuckTitles(QPainter& painter, const std::vector<std::int32_t>& boxes) const {
  if (layout::frame::header * lens_.scale < 8) return;
  const auto font = frameFont();
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  std::vector<QRectF> placed;
  for (auto i : boxes) {
    if (!box(i).open) continue;
    const auto line = stuckLine(i, metrics);
    if (!line || line->width() < 48) continue;
    double left = std::max(line->left() + 7, 4.0);
    for (const auto& other : placed)
      if (other.intersects(QRectF(left, line->top(), 40, line->height()))) left = std::max(left, other.right() + 4);
    const auto words = toQt(layout::boxText(*scene().tree, box(i).node, box(i).lane).title);
    const double room = line->right() - 8 - left;
    if (room < std::min(24.0, metrics.horizontalAdvance(words))) continue;
    const auto title = metrics.elidedText(words, Qt::ElideRight, room);
    const QRectF area(left, line->top() + 2, metrics.horizontalAdvance(title) + 10, line->height());
    placed.push_back(area);
    painter.setPen(QPen(look_.colors.frameLine, 1));
    painter.setBrush(look_.colors.canvas);
    painter.drawRoundedRect(area, 4, 4);
    painter.setPen(i == lens_.current ? look_.colors.selected : look_.colors.frameText);
    painter.drawText(area, Qt::AlignCenter, title);
  }
}

const GraphText& GraphPainter::textFor(int i) const {
  if (const auto* known = texts_->object(i)) return *known;
  const auto text = layout::boxText(*scene().tree, box(i).node, box(i).lane);
  const double room =
      box(i).rect.width - 2 * layout::box::padX - (scene().tree->canOpen(box(i).node) ? layout::box::chevron : 0) + 4;
  auto* made = new GraphText;
  const auto prepare = [&](QStaticText& target, const QString& words, const QFont& font) {
    target.setTextFormat(Qt::PlainText);
    target.setText(QFontMetricsF(font).elidedText(words, Qt::ElideRight, room));
    target.setPerformanceHint(QStaticText::AggressiveCaching);
    target.prepare({}, font);
  };
  prepare(made->title, toQt(text.title), look_.title);
  const auto told = look_.overlay ? look_.overlay->text(box(i).node, box(i).lane) : QString();
  prepare(made->detail, told.isEmpty() ? toQt(text.detail) : told, look_.detail);
  QStringList badges;
  for (const auto& badge : text.badges) badges << badgeText(badge);
  made->hasBadges = !badges.isEmpty();
  prepare(made->badges, badges.join(QLatin1Char(' ')), look_.detail);
  texts_->insert(i, made);
  return *made;
}

void GraphPainter::closedBox(QPainter& painter, int i) const {
  const auto& b = box(i);
  const auto rect = toScreen(toQt(b.rect));
  const auto& tree = *scene().tree;
  const auto fill = fillFor(b);
  const bool group = tree.canOpen(b.node);
  const auto op = opOf(i);
  const auto relation = relationOf(op);
  const auto& theme = look_.theme;

  painter.setPen(QPen(fill.line, 1));
  if (group) {
    // A card with another below it: there is more inside.
    painter.setBrush(fill.fill);
    painter.drawRoundedRect(rect.translated(3 * lens_.scale, 3 * lens_.scale), corner, corner);
  }
  auto ground = fill.fill;
  if (relation == Relation::origin) ground = theme.origin;
  if (relation == Relation::derived) ground = theme.derived;
  if (relation == Relation::way) ground = theme.error;
  if (relation == Relation::selected) ground = theme.selected;
  painter.setBrush(ground);
  painter.drawRoundedRect(rect, corner, corner);
  // The role as a bar on the outer side.
  const double bar = 4 * lens_.scale;
  const QRectF strip(b.lane == layout::Lane::backward ? rect.right() - bar - 1 : rect.left() + 1,
                     rect.top() + corner / 2, bar, rect.height() - corner);
  painter.fillRect(strip, fill.accent);

  if (lens_.scale < readable) {
    smallText(painter, i, rect);
    if (group)
      drawChevron(painter, {rect.right() - 8 - (b.lane == layout::Lane::backward ? bar : 0), rect.center().y()}, 2.5,
                  false, look_.colors.faint);
    return marks(painter, i, rect);
  }
  boxText(painter, i, rect);
  if (group)
    drawChevron(
        painter,
        {rect.right() - 12 * lens_.scale - (b.lane == layout::Lane::backward ? bar : 0), rect.top() + 13 * lens_.scale},
        3.5 * lens_.scale, false, look_.colors.faint);
  marks(painter, i, rect);
}

void GraphPainter::boxText(QPainter& painter, int i, const QRectF& rect) const {
  const auto& text = textFor(i);
  const bool dimmed = look_.isDimmed(box(i));
  const auto ink = [&](const QColor& color) { return dimmed ? mixed(color, look_.colors.canvas, dimmedShare) : color; };
  painter.save();
  painter.translate(rect.topLeft());
  painter.scale(lens_.scale, lens_.scale);
  painter.setFont(look_.title);
  painter.setPen(ink(look_.colors.text));
  double y = layout::box::padY - 1;
  painter.drawStaticText(QPointF(layout::box::padX, y), text.title);
  y += layout::box::titleHeight;
  painter.setFont(look_.detail);
  painter.setPen(ink(look_.colors.faint));
  painter.drawStaticText(QPointF(layout::box::padX, y), text.detail);
  y += layout::box::detailHeight;
  if (text.hasBadges) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(dimmed ? faded(look_.colors.badge, dimmedShare) : look_.colors.badge);
    painter.drawRoundedRect(
        QRectF(layout::box::padX - 4, y + 1, text.badges.size().width() + 8, layout::box::badgeHeight - 2), 4, 4);
    painter.setPen(ink(look_.colors.badgeText));
    painter.drawStaticText(QPointF(layout::box::padX, y + 2), text.badges);
  }
  painter.restore();
}

void GraphPainter::smallText(QPainter& painter, int i, const QRectF& rect) const {
  const auto& tree = *scene().tree;
  const bool group = tree.canOpen(box(i).node);
  auto font = look_.title;
  font.setPixelSize(10);
  const QFontMetricsF metrics(font);
  const auto room = rect.adjusted(6, 1, group ? -14 : -6, -1);
  if (room.height() < metrics.ascent()) return;
  const auto text = layout::boxText(*scene().tree, box(i).node, box(i).lane);
  const auto told = look_.overlay ? look_.overlay->text(box(i).node, box(i).lane) : QString();
  const bool dimmed = look_.isDimmed(box(i));
  const auto ink = [&](const QColor& color) { return dimmed ? mixed(color, look_.colors.canvas, dimmedShare) : color; };
  // The words of the overlay come before whatever there is no room for.
  const bool both = room.height() >= 2 * metrics.height() - 2 && !told.isEmpty();
  const QRectF first(room.left(), both ? room.center().y() - metrics.height() + 1 : room.top(), room.width(),
                     both ? metrics.height() : room.height());
  painter.setFont(font);
  painter.setPen(ink(look_.colors.text));
  const auto whole = toQt(text.title);
  const bool isRun = tree.node(box(i).node).kind == layout::TreeNode::Kind::run;
  const auto title = isRun && metrics.horizontalAdvance(whole) > room.width()
                         ? briefWithin(toQt(text.brief), metrics, room.width())
                         : whole;
  painter.drawText(first, Qt::AlignVCenter | Qt::AlignLeft, metrics.elidedText(title, Qt::ElideRight, room.width()));
  if (!both) return;
  painter.setFont(look_.detail);
  painter.setPen(ink(look_.colors.faint));
  painter.drawText(first.translated(0, metrics.height() - 1), Qt::AlignVCenter | Qt::AlignLeft,
                   QFontMetricsF(look_.detail).elidedText(told, Qt::ElideRight, room.width()));
}

/// What is where on a box: breakpoint at the outer top corner, NaN at the inner one, the op that runs next as an arrow
/// from outside, origin links as diamonds.
void GraphPainter::marks(QPainter& painter, int i, const QRectF& rect) const {
  if (!lens_.execution) return;
  const auto& theme = look_.theme;
  const auto& now = lens_.execution->now();
  const auto op = opOf(i);
  const auto node = box(i).node;
  const auto& tree = *scene().tree;
  const auto holds = [&](BoundSymbolId other) {
    const auto at = tree.nodeOf(other);
    return at >= 0 && tree.within(at, node) && tree.node(at).lane == box(i).lane;
  };
  const double size = std::max(7.0, 11 * lens_.scale);
  auto mark = lens_.execution->mark(op);
  if (!op)
    for (const auto& [other, kind] : lens_.execution->marks())
      if (holds(other)) mark = std::max(mark, kind);
  if (mark != BreakpointMark::none) {
    painter.setPen(QPen(theme.breakpoint, 1.5));
    painter.setBrush(mark == BreakpointMark::disabled ? QBrush(look_.colors.canvas) : QBrush(theme.breakpoint));
    const QRectF disc(rect.left() - size / 2, rect.top() - size / 2, size, size);
    painter.drawEllipse(disc);
    if (mark == BreakpointMark::conditional)
      painter.fillRect(QRectF(disc.left() + size * 0.25, disc.center().y() - 1, size * 0.5, 2), look_.colors.canvas);
  }
  const auto& badValues = lens_.execution->badValues();
  const bool bad = std::ranges::any_of(now.bad, holds) || (now.failed && holds(now.failed)) ||
                   std::ranges::any_of(badValues, [&](ValueId v) { return holds(tree.document().value(v).producer); });
  if (bad) {
    const QPointF c(rect.right() - size / 2, rect.top());
    painter.setPen(QPen(look_.colors.canvas, 1));
    painter.setBrush(theme.bad);
    painter.drawPolygon(QPolygonF{
        {c + QPointF(0, -size * 0.6), c + QPointF(size * 0.7, size * 0.5), c + QPointF(-size * 0.7, size * 0.5)}});
  }
  if (now.current && holds(now.current)) {
    painter.setPen(QPen(theme.executionLine, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(rect.adjusted(-3, -3, 3, 3), corner + 2, corner + 2);
    const QPointF tip(rect.left() - 5, rect.center().y());
    const double s = std::max(8.0, 12 * lens_.scale);
    painter.setPen(QPen(look_.colors.canvas, 1));
    painter.setBrush(theme.execution);
    painter.drawPolygon(QPolygonF{{tip, tip + QPointF(-s, -s * 0.6), tip + QPointF(-s, s * 0.6)}});
  }
  const auto relation = relationOf(op);
  if (relation == Relation::origin || relation == Relation::derived) {
    const auto color = relation == Relation::origin ? theme.originMark : theme.derivedMark;
    const QPointF c(rect.left(), rect.center().y());
    const double r = size * 0.5;
    painter.setPen(QPen(color, 1.5));
    painter.setBrush(relation == Relation::origin ? QBrush(color) : QBrush(look_.colors.canvas));
    painter.drawPolygon(QPolygonF{{c + QPointF(0, -r), c + QPointF(r, 0), c + QPointF(0, r), c + QPointF(-r, 0)}});
  }
}

void GraphPainter::lanes(QPainter& painter) const {
  if (!scene().tree->ladder()) return;
  auto font = look_.title;
  font.setPixelSize(11);
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  painter.fillRect(QRectF(0, 0, lens_.size.width(), lanesHeight), look_.colors.canvas);
  painter.fillRect(QRectF(0, lanesHeight, lens_.size.width(), 1), faded(look_.colors.frameLine, 0.6));
  const auto bounds = toScreen(toQt(scene().bounds));
  const double axis = toScreen(QPointF(scene().axis, 0)).x();
  const auto pill = [&](const QString& text, double left, double right, bool first, const GraphColors::Fill& fill) {
    left = std::max(left, 4.0);
    right = std::min(right, lens_.size.width() - 4.0);
    const double w = metrics.horizontalAdvance(text) + 20;
    if (right < 4 || left > lens_.size.width() - 4) return;
    // A narrow lane's name reaches out to its own side.
    const QRectF box(right - left >= w ? (left + right - w) / 2 : first ? right - w - 4 : left + 4, 4, w, 20);
    painter.setPen(QPen(fill.line, 1));
    painter.setBrush(fill.fill);
    painter.drawRoundedRect(box, 10, 10);
    painter.setPen(fill.accent);
    painter.drawText(box, Qt::AlignCenter, text);
  };
  pill(tr("Forward \u2193"), bounds.left(), axis, true, look_.colors.forward);
  pill(tr("Backward \u2191"), axis, bounds.right(), false, look_.colors.backward);
}

QSizeF GraphPainter::legend(QPainter* painter, const QPointF& corner, double width) const {
  if (!look_.overlay || look_.overlay->legend().empty()) return {};
  constexpr double between = 16, swatch = 16, toText = 6, padding = 5;
  const QFontMetricsF metrics(look_.plain);
  const double line = metrics.height() + 4;
  struct Entry {
    QColor color;
    QString text;
    double left, row;
  };
  std::vector<Entry> entries;
  double x = 0, row = 0, widest = 0;
  const auto add = [&](const QColor& color, const QString& text) {
    const double wanted = metrics.horizontalAdvance(text) + (color.isValid() ? swatch + toText : 0);
    if (x > 0 && x + wanted > width) x = 0, ++row;
    entries.push_back({color, text, x, row});
    widest = std::max(widest, x + wanted);
    x += wanted + between;
  };
  add({}, titleText(look_.overlay->kind()));
  for (const auto& entry : look_.overlay->legend()) add(entry.color, entry.text);
  const QSizeF size(widest, line * (row + 1) + 2 * padding);
  if (!painter) return size;
  painter->setRenderHint(QPainter::Antialiasing, true);
  painter->setFont(look_.plain);
  const double top = corner.y() - size.height() + padding;
  for (const auto& entry : entries) {
    QRectF place(corner.x() + entry.left, top + entry.row * line, widest, line);
    if (entry.color.isValid()) {
      painter->setPen(QPen(look_.colors.frameLine, 1));
      painter->setBrush(entry.color);
      painter->drawRoundedRect(QRectF(place.left(), place.center().y() - 6, swatch, 12), 3, 3);
      place.setLeft(place.left() + swatch + toText);
    }
    painter->setPen(entry.color.isValid() ? look_.colors.faint : look_.colors.text);
    painter->drawText(place, Qt::AlignVCenter | Qt::AlignLeft, entry.text);
  }
  return size;
}

}  // namespace retrograd::views
