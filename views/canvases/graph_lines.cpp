// The lines of the graph under the pointer: what runs along one, and a click that follows it.
#include <QPainterPath>
#include <QPolygonF>
#include <cmath>

#include "views/canvases/graph_paint.h"
#include "views/canvases/graph_view.h"
#include "views/session/own_names.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr double reach = 5;            // pixels from a line that still point at it
constexpr std::size_t mostNamed = 10;  // values of a line in its tooltip

double distance(const QLineF& line, const QPointF& point) {
  const auto way = line.p2() - line.p1(), off = point - line.p1();
  const double length = QPointF::dotProduct(way, way);
  const double along = length > 0 ? std::clamp(QPointF::dotProduct(off, way) / length, 0.0, 1.0) : 0;
  return QLineF(line.p1() + along * way, point).length();
}

double distance(const QPainterPath& path, const QPointF& point) {
  double least = 1e300;
  for (const auto& polygon : path.toSubpathPolygons())
    for (int i = 1; i < polygon.size(); ++i)
      least = std::min(least, distance(QLineF(polygon[i - 1], polygon[i]), point));
  return least;
}

}  // namespace

bool GraphView::isGround(int i, const QPointF& position) const {
  return i < 0 || (box(i).open && position.y() >= boxRect(i).top() + layout::frame::header * scale_);
}

int GraphView::lineAt(const QPointF& position) const {
  if (!picture_ || detail() != Detail::full || !isGround(boxAt(position), position)) return -1;
  std::vector<std::int32_t> near;
  const QPointF around(reach / scale_, reach / scale_);
  picture_->grid.edgesIn(QRectF(toScene(position) - around, toScene(position) + around), near);
  const auto lens = this->lens();
  const GraphPainter paint(scene(), look_, lens, texts_);
  int best = -1;
  double least = reach;
  for (auto line : near) {
    const auto& edge = scene().edges[line];
    if (!edgesShown(edge.kind)) continue;
    if (const double away = distance(paint.path(edge), position); away <= least) {
      least = away;
      best = line;
    }
  }
  return best;
}

void GraphView::followLine(int line) {
  const auto& edge = scene().edges[line];
  const auto values = picture_->lines.of(line);
  const auto value = values.empty() ? ValueId() : values.front();
  const auto maker = value ? document_->analysis->document->value(value).producer : BoundSymbolId();
  const int begin = maker ? boxOf(maker) : edge.from;
  const bool isBack = begin >= 0 && begin != current_;
  const int end = isBack ? begin : edge.to;
  if (end < 0) return;
  const auto op = isBack && maker ? maker : opOf(end);
  setCurrent(end, false);
  if (op) context_.selection->select(op, value);
  ensureVisible(end, false);
}

QString GraphView::lineText(int line) const {
  const auto& document = *document_->analysis->document;
  const auto values = picture_->lines.of(line);
  if (values.empty()) return tr("to the op that it comes from");
  QStringList text;
  for (auto value : values.first(std::min(values.size(), mostNamed))) {
    auto row = nameOf(document, value, context_.notes);
    if (document.isTensor(value)) row += QStringLiteral("  ") + typeText(document.meta(value));
    text << row;
  }
  if (values.size() > mostNamed) text << tr("and %1 more").arg(values.size() - mostNamed);
  if (const auto bytes = picture_->lines.bytes(line); bytes > 0) text << bytesText(bytes);
  return text.join(QLatin1Char('\n'));
}

}  // namespace retrograd::views
