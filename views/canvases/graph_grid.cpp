#include "views/canvases/graph_grid.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace retrograd::views {
namespace {

constexpr double mostCells = 60'000;
constexpr int largeCells = 48;

}  // namespace

QRectF edgeArea(const layout::Scene& scene, const layout::SceneEdge& edge) {
  const auto path = scene.path(edge);
  double left = path[0].x, right = left, top = path[0].y, bottom = top;
  for (const auto& p : path) {
    left = std::min<double>(left, p.x);
    right = std::max<double>(right, p.x);
    top = std::min<double>(top, p.y);
    bottom = std::max<double>(bottom, p.y);
  }
  return {left - 1, top - 1, right - left + 2, bottom - top + 2};
}

GraphGrid::GraphGrid(const layout::Scene& scene) : bounds_(toQt(scene.bounds)) {
  std::vector<QRectF> boxes, edges;
  boxes.reserve(scene.boxes.size());
  edges.reserve(scene.edges.size());
  for (const auto& box : scene.boxes) boxes.push_back(toQt(box.rect));
  for (const auto& edge : scene.edges) edges.push_back(edgeArea(scene, edge));
  cell_ = std::max(400.0, std::sqrt(std::max(1.0, bounds_.width() * bounds_.height()) / mostCells));
  columns_ = static_cast<int>(bounds_.width() / cell_) + 1;
  rows_ = static_cast<int>(bounds_.height() / cell_) + 1;
  fill(boxes_, boxes);
  fill(edges_, edges);
}

GraphGrid::Cells GraphGrid::cellsOf(const QRectF& area) const {
  const auto at = [this](double distance, int count) {
    return static_cast<int>(std::clamp(distance / cell_, 0.0, count - 1.0));
  };
  return {at(area.left() - bounds_.left(), columns_), at(area.top() - bounds_.top(), rows_),
          at(area.right() - bounds_.left(), columns_), at(area.bottom() - bounds_.top(), rows_)};
}

void GraphGrid::fill(Layer& layer, const std::vector<QRectF>& areas) const {
  const auto cells = static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_);
  layer.begin.assign(cells + 1, 0);
  layer.count = areas.size();
  const auto each = [&](const Cells& c, auto&& visit) {
    for (int y = c.top; y <= c.bottom; ++y)
      for (int x = c.left; x <= c.right; ++x)
        visit(static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(x));
  };
  const auto isLarge = [](const Cells& c) { return (c.right - c.left + 1) * (c.bottom - c.top + 1) > largeCells; };
  for (std::size_t i = 0; i < areas.size(); ++i) {
    const auto c = cellsOf(areas[i]);
    if (isLarge(c)) layer.large.push_back(static_cast<std::int32_t>(i));
    else each(c, [&](std::size_t cell) { ++layer.begin[cell + 1]; });
  }
  for (std::size_t i = 1; i < layer.begin.size(); ++i) layer.begin[i] += layer.begin[i - 1];
  layer.items.resize(layer.begin.back());
  auto at = layer.begin;
  for (std::size_t i = 0; i < areas.size(); ++i)
    if (const auto c = cellsOf(areas[i]); !isLarge(c))
      each(c, [&](std::size_t cell) { layer.items[at[cell]++] = static_cast<std::int32_t>(i); });
}

void GraphGrid::query(const Layer& layer, const QRectF& area, std::vector<std::int32_t>& found) const {
  found.clear();
  if (columns_ == 0 || layer.begin.empty()) return;
  // A bit for each item puts them in order and drops the second of two cells at once: with the whole of a large graph
  // in sight sorting was a sixth of a frame.
  constexpr std::size_t bits = 64;
  std::vector<std::uint64_t> seen(layer.count / bits + 1);
  const auto see = [&seen](std::int32_t item) {
    seen[static_cast<std::size_t>(item) / bits] |= std::uint64_t{1} << (static_cast<std::size_t>(item) % bits);
  };
  for (auto item : layer.large) see(item);
  const auto c = cellsOf(area);
  for (int y = c.top; y <= c.bottom; ++y) {
    const auto row = static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_);
    const auto first = layer.begin[row + static_cast<std::size_t>(c.left)],
               last = layer.begin[row + static_cast<std::size_t>(c.right) + 1];
    for (auto i = first; i < last; ++i) see(layer.items[i]);
  }
  for (std::size_t word = 0; word < seen.size(); ++word)
    for (auto rest = seen[word]; rest != 0; rest &= rest - 1)
      found.push_back(static_cast<std::int32_t>(word * bits + static_cast<std::size_t>(std::countr_zero(rest))));
}

}  // namespace retrograd::views
