// Edges of the graph: their lines, heads and labels.
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <limits>

#include "views/canvases/graph_grid.h"
#include "views/canvases/graph_paint.h"
#include "views/canvases/graph_painter.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr double labelled = 0.8;        ///< scale from which all edges say what runs along them
constexpr double leastLabelled = 0.55;  ///< scale from which lit edges and saved tensors do

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

bool isAcross(const layout::SceneEdge& edge) {
  return edge.kind == layout::EdgeKind::saved || edge.kind == layout::EdgeKind::origin;
}

}  // namespace

QPainterPath GraphPainter::path(const layout::SceneEdge& edge) const { return pathOf(pointsOf(edge), isAcross(edge)); }

std::vector<QPointF> GraphPainter::pointsOf(const layout::SceneEdge& edge) const {
  std::vector<QPointF> points;
  for (const auto& p : scene().path(edge)) points.push_back(toScreen(toQt(p)));
  return points;
}

void GraphPainter::edge(QPainter& painter, const layout::SceneEdge& edge, bool lit) const {
  const bool across = isAcross(edge);
  const auto points = pointsOf(edge);
  auto pen = edgePen(look_.colors, edge.kind, lit ? 2.4 : edge.count > 1 ? 1.8 : 1.3);
  pen.setCosmetic(lens_.cosmetic);
  const bool background = !lit && lens_.hovering && lens_.reach && !lens_.reach->edges.empty();
  if (background) pen.setColor(faded(pen.color(), 0.4));
  if (!lit && across) pen.setColor(faded(pen.color(), 0.8));
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(pathOf(points, across));
  const double size = std::max(4.0, 7.5 * lens_.scale) * (lit ? 1.2 : 1);
  const auto direction = [&](const QPointF& from, const QPointF& to) {
    if (across) return QPointF(to.x() > from.x() ? 1 : -1, 0);
    return QPointF(0, to.y() > from.y() ? 1 : -1);
  };
  if (edge.arrowAtEnd)
    drawHead(painter, points.back(), direction(points[points.size() - 2], points.back()), size, pen.color());
  if (edge.arrowAtBegin && edge.kind != layout::EdgeKind::origin)
    drawHead(painter, points.front(), direction(points[1], points.front()), size, pen.color());
}

void GraphPainter::edgeLabel(QPainter& painter, const layout::SceneEdge& edge, bool lit,
                             const std::vector<QRectF>& titles) const {
  if (lens_.scale < leastLabelled) return;
  const auto line = static_cast<std::int32_t>(&edge - scene().edges.data());
  const auto crossing = look_.overlay ? look_.overlay->edgeText(scene(), line) : QString();
  const auto label = crossing.isEmpty() ? lineLabel(line, lit) : crossing;
  if (label.isEmpty()) return;
  const auto pen = edgePen(look_.colors, edge.kind, 1);
  const bool across = isAcross(edge);
  const bool background = !lit && lens_.hovering && lens_.reach && !lens_.reach->edges.empty();
  drawLabel(painter, label, edge, pointsOf(edge),
            faded(pen.color(), (background ? 0.4 : 1) * (!lit && across ? 0.8 : 1)), !crossing.isEmpty(), titles);
}

QString GraphPainter::lineLabel(std::int32_t line, bool lit) const {
  const auto& edge = scene().edges[line];
  const bool saved = edge.kind == layout::EdgeKind::saved;
  if (lens_.label == LineLabel::none || !(lit || (saved ? edge.flow < 0 : lens_.scale >= labelled))) return {};
  QString label;
  if (lens_.label == LineLabel::norms) {
    if (const auto norm = normOf(line)) label = numberText(*norm);
  } else if (const auto bytes = saved ? edge.bytes : lens_.lines ? lens_.lines->bytes(line) : 0; bytes > 0)
    label = bytesText(bytes);
  return label.isEmpty() && lit && edge.count > 1 ? tr("%n values", nullptr, static_cast<int>(edge.count)) : label;
}

std::optional<double> GraphPainter::normOf(std::int32_t line) const {
  if (!lens_.lines || !lens_.numbers) return {};
  const auto values = lens_.lines->of(line);
  if (values.empty()) return {};
  double squares = 0;
  bool nan = false, inf = false;
  for (auto value : values) {
    const auto* statistics = lens_.numbers->statistics(value);
    if (!statistics) return {};
    nan = nan || statistics->nan > 0;
    inf = inf || statistics->inf > 0;
    squares += statistics->norm * statistics->norm;
  }
  return nan   ? std::numeric_limits<double>::quiet_NaN()
         : inf ? std::numeric_limits<double>::infinity()
               : std::sqrt(squares);
}

void GraphPainter::drawLabel(QPainter& painter, const QString& label, const layout::SceneEdge& edge,
                             const std::vector<QPointF>& points, const QColor& color, bool crosses,
                             const std::vector<QRectF>& titles) const {
  const bool across = isAcross(edge);
  auto font = look_.detail;
  font.setPixelSize(10);
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  const double width = metrics.horizontalAdvance(label);
  if (across && width + 24 > points.back().x() - points.front().x()) return;
  const auto path = pathOf(points, across);
  // On a short line it would hide the line: it is next to it then.
  const bool next = !across && !crosses && std::abs(points.back().y() - points.front().y()) < 2.5 * metrics.height();
  const auto tagAt = [&](double percent) {
    const auto point = path.pointAtPercent(percent);
    return QRectF(next ? point.x() + 3 : point.x() - width / 2 - 3, point.y() - metrics.height() / 2, width + 6,
                  metrics.height());
  };
  const auto isFree = [&](const QRectF& tag) {
    return std::ranges::none_of(titles, [&](const QRectF& title) { return title.intersects(tag); });
  };
  auto tag = tagAt(0.5);
  if (!isFree(tag))
    for (double percent : {0.65, 0.35, 0.8, 0.2})
      if (const auto other = tagAt(percent); isFree(other)) {
        tag = other;
        break;
      }
  if (!next) painter.fillRect(tag, look_.colors.canvas);
  painter.setPen(crosses ? look_.colors.text : color);
  painter.setBrush(Qt::NoBrush);
  if (crosses) painter.drawRect(tag);
  painter.drawText(tag, Qt::AlignCenter, label);
}

}  // namespace retrograd::views
