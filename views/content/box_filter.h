#pragma once
#include "core/base/enum_array.h"
#include "core/layout/graph_tree.h"
#include "views/session/filtered_ops.h"

namespace retrograd::views {

/// Which boxes of a graph hold an op that passes the filter: the others are drawn pale.
class BoxFilter {
 public:
  BoxFilter(const layout::GraphTree& tree, const FilteredOps& ops);
  bool passes(std::int32_t node, layout::Lane lane) const { return passes_[node][lane]; }

 private:
  std::vector<layout::LaneArray<bool>> passes_;  ///< by node
};

}  // namespace retrograd::views
