// Where the graph is looked at from: moving, zooming, and what to go to.
#include <algorithm>
#include <cmath>

#include "views/canvases/graph_view.h"

namespace retrograd::views {
namespace {

constexpr double leastZoom = 0.0002, mostZoom = 3;

}  // namespace

void GraphView::moved() {
  still_ = false;
  stillTimer_.start();
  update();
}

void GraphView::keepInSight() {
  if (!picture_) return;
  // At least a strip of the graph stays on the screen.
  const auto bounds = toQt(scene().bounds);
  const QSizeF view = QSizeF(size()) / scale_;
  const double strip = 80 / scale_;
  origin_.setX(std::clamp(origin_.x(), bounds.left() - view.width() + strip,
                          std::max(bounds.left() - view.width() + strip, bounds.right() - strip)));
  origin_.setY(std::clamp(origin_.y(), bounds.top() - view.height() + strip,
                          std::max(bounds.top() - view.height() + strip, bounds.bottom() - strip)));
}

void GraphView::panBy(const QPointF& pixels) {
  origin_ += pixels / scale_;
  keepInSight();
  moved();
}

void GraphView::zoomBy(double factor, const QPointF& around) {
  const auto fixed = toScene(around);
  scale_ = std::clamp(scale_ * factor, leastZoom, mostZoom);
  origin_ = fixed - around / scale_;
  keepInSight();
  moved();
}

GraphView::Place GraphView::placeFor(const QRectF& area, double most) const {
  const double margin = 28;
  const double above = upperStrip(), below = lowerStrip();
  const double fit = std::min((width() - 2 * margin) / std::max(1.0, area.width()),
                              (height() - above - below - 2 * margin) / std::max(1.0, area.height()));
  const double scale = std::clamp(fit, leastZoom, most);
  return {area.center() - QPointF(width(), height() + above - below) / (2 * scale), scale};
}

void GraphView::goTo(const Place& place) {
  origin_ = place.origin;
  scale_ = place.scale;
  moved();
}

void GraphView::zoomToFit() { picture_ ? zoomTo(toQt(scene().bounds)) : layOutAgain(); }

void GraphView::zoomToWidth() {
  if (!picture_) return;
  const auto bounds = toQt(scene().bounds);
  scale_ = std::clamp((width() - 40) / std::max(1.0, bounds.width()), 0.1, 1.0);
  origin_ = QPointF(bounds.center().x() - width() / (2 * scale_), bounds.top() - 52 / scale_);
  if (bounds.height() * scale_ < height() - 60) origin_.setY(bounds.center().y() - height() / (2 * scale_));
  moved();
}

void GraphView::zoomToSelection() {
  if (current_ >= 0) zoomTo(toQt(box(current_).rect).marginsAdded({60, 60, 60, 60}), 1.2);
}

void GraphView::zoomToModule() {
  if (!picture_ || current_ < 0) return;
  const auto& tree = *scene().tree;
  // An operation that is all of its module represents it.
  const auto isModule = [&](std::int32_t node) {
    return node == 0 || (tree.node(node).kind != layout::TreeNode::Kind::op && tree.node(node).label >= 0);
  };
  std::vector<Place> places;  // from the inside out
  for (auto node = currentNode_; node >= 0; node = tree.node(node).parent) {
    QRectF area = node == 0 ? toQt(scene().bounds) : QRectF();
    for (auto lane : {layout::Lane::forward, layout::Lane::backward})
      if (const auto i = scene().box(node, lane); i >= 0) area |= toQt(box(i).rect);
    if (isModule(node) && !area.isNull()) places.push_back(placeFor(area, 1));
  }
  const auto isHere = [&](const Place& place) {
    return std::abs(place.scale - scale_) < 1e-3 * scale_ && (place.origin - origin_).manhattanLength() * scale_ < 2;
  };
  // Of places that look the same (a run and the module that holds nothing else) the last.
  const auto here = std::find_if(places.rbegin(), places.rend(), isHere);
  const auto next = here == places.rend() ? places.begin() : here.base();
  if (next != places.end()) goTo(*next);
}

void GraphView::ensureVisible(int i, bool centre) {
  if (!picture_ || i < 0) return;
  const auto rect = toQt(box(i).rect);
  const double above = upperStrip() / scale_;
  const auto area = visibleArea().adjusted(0, above, 0, -lowerStrip() / scale_);
  if (area.contains(rect)) return;
  if (centre || rect.height() > area.height()) {
    origin_ = rect.center() - QPointF(area.width(), area.height()) / 2 - QPointF(0, above);
    if (rect.height() > area.height()) origin_.setY(rect.top() - 12 / scale_ - above);
    // Both lanes of a ladder stay in sight where they fit.
    const auto bounds = toQt(scene().bounds);
    if (bounds.width() < area.width()) origin_.setX(bounds.center().x() - area.width() / 2);
  } else {
    const double margin = 24 / scale_;
    origin_.rx() +=
        std::min(0.0, rect.left() - margin - area.left()) + std::max(0.0, rect.right() + margin - area.right());
    origin_.ry() +=
        std::min(0.0, rect.top() - margin - area.top()) + std::max(0.0, rect.bottom() + margin - area.bottom());
  }
  keepInSight();
  moved();
}

}  // namespace retrograd::views
