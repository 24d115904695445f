// What lies over the graph and does not move with it: the small map and the overlay's legend.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "core/layout/labels.h"
#include "views/canvases/graph_paint.h"
#include "views/canvases/graph_view.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr double fromEdge = 12, mapWidth = 100, mapHeight = 240,
                 mapShare = 0.36;  // pixels at most, and of the view's height

}  // namespace

QColor mixed(const QColor& a, const QColor& b, double share) {
  const auto part = [share](int x, int y) { return static_cast<int>(std::lround(x * share + y * (1 - share))); };
  return {part(a.red(), b.red()), part(a.green(), b.green()), part(a.blue(), b.blue())};
}

QColor faded(QColor color, double share) {
  color.setAlphaF(static_cast<float>(color.alphaF() * share));
  return color;
}

void fillPixels(QImage& image, const QRectF& rect, QRgb color) {
  const int left = std::max(0, static_cast<int>(std::floor(rect.left()))),
            right = std::min(image.width(), std::max(left + 1, static_cast<int>(std::ceil(rect.right()))));
  const int top = std::max(0, static_cast<int>(std::floor(rect.top()))),
            bottom = std::min(image.height(), std::max(top + 1, static_cast<int>(std::ceil(rect.bottom()))));
  for (int y = top; y < bottom; ++y) {
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
    for (int x = left; x < right; ++x) line[x] = color;
  }
}

QRectF GraphView::minimapRect() const {
  if (!picture_ || !minimapShown_) return {};
  const auto bounds = toQt(scene().bounds);
  if (visibleArea().contains(bounds)) return {};
  const double factor = std::min(mapWidth / std::max(1.0, bounds.width()),
                                 std::min(mapHeight, height() * mapShare) / std::max(1.0, bounds.height()));
  const QSizeF size(std::max(24.0, bounds.width() * factor), std::max(24.0, bounds.height() * factor));
  const double left = minimapCorner_ == Qt::BottomLeftCorner || minimapCorner_ == Qt::TopLeftCorner
                          ? fromEdge
                          : width() - size.width() - fromEdge;
  const bool top = minimapCorner_ == Qt::TopLeftCorner || minimapCorner_ == Qt::TopRightCorner;
  return {QPointF(left, top ? upperStrip() + fromEdge : height() - lowerStrip() - size.height() - fromEdge), size};
}

double GraphView::upperStrip() const { return picture_ && scene().tree->ladder() ? lanesHeight : 0; }

double GraphView::lowerStrip() const {
  if (!picture_) return 0;
  const auto lens = this->lens();
  return GraphPainter(scene(), look_, lens, texts_).legend(nullptr, {}, width() - 2 * fromEdge).height();
}

void GraphView::paintLegend(QPainter& painter, const GraphPainter& paint) const {
  const double strip = lowerStrip();
  if (strip == 0) return;
  painter.fillRect(QRectF(0, height() - strip, width(), strip), look_.colors.canvas);
  painter.fillRect(QRectF(0, height() - strip, width(), 1), faded(look_.colors.frameLine, 0.6));
  paint.legend(&painter, QPointF(fromEdge, height()), width() - 2 * fromEdge);
}

void GraphView::showMinimap(bool on) {
  minimapShown_ = on;
  update();
}

int GraphView::minimapCovers() const {
  const auto map = minimapRect();
  if (map.isEmpty()) return 0;
  std::vector<std::int32_t> below;
  picture_->grid.boxesIn(QRectF(toScene(map.topLeft()), map.size() / scale_), below);
  return static_cast<int>(std::ranges::count_if(
      below, [&](std::int32_t i) { return !box(i).open && toScreen(toQt(box(i).rect)).intersects(map); }));
}

void GraphView::placeMinimap() {
  if (pointsAtMinimap_ || onMinimap_) return;
  auto best = minimapCorner_;
  int least = minimapCovers();
  for (auto corner : {Qt::BottomRightCorner, Qt::TopRightCorner, Qt::BottomLeftCorner, Qt::TopLeftCorner}) {
    minimapCorner_ = corner;
    if (const int covered = minimapCovers(); covered < least) best = corner, least = covered;
  }
  minimapCorner_ = best;
}

void GraphView::paintMinimap(QPainter& painter, const GraphPainter& paint) {
  const auto map = minimapRect();
  if (map.isEmpty()) return;
  const auto bounds = toQt(scene().bounds);
  const double fx = map.width() / bounds.width(), fy = map.height() / bounds.height();
  fillMinimap((map.size() * devicePixelRatioF()).toSize(), paint);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setOpacity(minimapFades() ? 0.25 : 1);
  painter.fillRect(map.adjusted(-5, -5, 5, 5), look_.colors.canvas);
  painter.drawImage(map, minimap_);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(look_.colors.frameLine, 1));
  painter.drawRect(map.adjusted(-5, -5, 4, 4));
  const auto area = visibleArea().intersected(bounds);
  painter.setPen(QPen(look_.colors.selected, 1.5));
  painter.setBrush(faded(look_.colors.selected, 0.12));
  painter.drawRect(QRectF(map.left() + (area.left() - bounds.left()) * fx, map.top() + (area.top() - bounds.top()) * fy,
                          area.width() * fx, std::max(3.0, area.height() * fy)));
  painter.setOpacity(1);
}

/// So many boxes a picture, the rest with the next: a million take longer than an event may.
void GraphView::fillMinimap(const QSize& size, const GraphPainter& paint) {
  constexpr std::size_t boxesAtOnce = 150'000;
  if (minimap_.size() != size) {
    minimap_ = QImage(size, QImage::Format_RGB32);
    minimap_.fill(look_.colors.canvas);
    minimapBoxes_ = 0;
  }
  const auto bounds = toQt(scene().bounds);
  const double fx = size.width() / bounds.width(), fy = size.height() / bounds.height();
  const auto& boxes = scene().boxes;
  for (const auto end = std::min(boxes.size(), minimapBoxes_ + boxesAtOnce); minimapBoxes_ < end; ++minimapBoxes_) {
    const auto& b = boxes[minimapBoxes_];
    if (b.open) continue;
    const QRectF r((b.rect.x - bounds.left()) * fx, (b.rect.y - bounds.top()) * fy, b.rect.width * fx,
                   b.rect.height * fy);
    fillPixels(minimap_, r, paint.fillFor(b).accent.rgb());
  }
  if (minimapBoxes_ < boxes.size())
    QMetaObject::invokeMethod(this, qOverload<>(&QWidget::update), Qt::QueuedConnection);
}

void GraphView::centreOnMinimap(const QPointF& position) {
  const auto map = minimapRect();
  if (map.isEmpty()) return;
  const auto bounds = toQt(scene().bounds);
  const QPointF at(bounds.left() + (position.x() - map.left()) / map.width() * bounds.width(),
                   bounds.top() + (position.y() - map.top()) / map.height() * bounds.height());
  origin_ = at - QPointF(width(), height()) / (2 * scale_);
  keepInSight();
  moved();
}

}  // namespace retrograd::views
