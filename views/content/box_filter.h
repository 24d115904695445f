#pragma once
#include "core/layout/graph_tree.h"
#include "views/session/filtered_ops.h"

namespace retrograd::views {

/// Which boxes of a graph hold an op that passes the filter: the others are drawn pale.
class BoxFilter {
 public:
  BoxFilter(const layout::GraphTree& tree, const FilteredOps& ops);
  bool passes(std::int32_t node, layout::Lane lane) const { return passes_[node][static_cast<std::size_t>(lane)]; }

 private:
  std::vector<std::array<bool, layout::laneCount>> passes_;  ///< by node
};

}  // namespace retrograd::views
