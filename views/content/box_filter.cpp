#include "views/content/box_filter.h"

namespace retrograd::views {

BoxFilter::BoxFilter(const layout::GraphTree& tree, const FilteredOps& ops)
    : passes_(static_cast<std::size_t>(tree.size())) {
  // In preorder: what is below a node comes after it.
  for (auto i = tree.size() - 1; i >= 0; --i) {
    const auto& node = tree.node(i);
    auto& own = passes_[i];
    if (node.kind == layout::TreeNode::Kind::op && ops.passes[node.op.index]) own[node.lane] = true;
    if (node.parent < 0) continue;
    auto& above = passes_[node.parent];
    for (auto lane : layout::bothLanes) above[lane] = above[lane] || own[lane];
  }
}

}  // namespace retrograd::views
