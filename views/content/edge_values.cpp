#include "views/content/edge_values.h"

#include <algorithm>

namespace retrograd::views {

EdgeValues::EdgeValues(const layout::Scene& scene, const Progress& progress)
    : begin_(scene.edges.size() + 1, 0), bytes_(scene.edges.size(), 0) {
  const auto& tree = *scene.tree;
  const auto& document = tree.document();
  const layout::LineIndex index(scene);
  std::vector<std::uint64_t> pairs;  // line and value
  std::size_t done = 0;
  for (const auto& edge : tree.edges()) {
    if (++done % 4096 == 0) progress.check();
    if (!edge.value || !document.isTensor(edge.value)) continue;
    index.forEachLine(edge, [&](std::int32_t line) {
      pairs.push_back(static_cast<std::uint64_t>(line) << 32 | static_cast<std::uint32_t>(edge.value.index));
    });
  }
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  values_.reserve(pairs.size());
  for (const auto pair : pairs) {
    const auto line = static_cast<std::size_t>(pair >> 32);
    ValueId value;
    value.index = static_cast<decltype(value.index)>(static_cast<std::uint32_t>(pair));
    values_.push_back(value);
    ++begin_[line + 1];
    bytes_[line] += document.meta(value).bytes();
  }
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
}

std::span<const ValueId> EdgeValues::of(std::int32_t line) const {
  if (begin_.empty()) return {};
  const auto i = static_cast<std::size_t>(line);
  return std::span(values_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
}

}  // namespace retrograd::views
