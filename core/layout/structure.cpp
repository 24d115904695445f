#include <bit>

#include "core/layout/tree_passes.h"

namespace retrograd::layout {

void hashStructure(GraphTree& tree) {
  for (auto i = tree.size() - 1; i >= 0; --i) {
    auto& n = tree.nodes_[i];
    auto hash = mix(static_cast<std::uint64_t>(n.kind), static_cast<std::uint64_t>(n.lane));
    for (auto measure : {n.width[Lane::forward], n.width[Lane::backward], n.height})
      hash = mix(hash, std::bit_cast<std::uint32_t>(measure));
    if (n.kind == TreeNode::Kind::op)
      hash = mix(hash, static_cast<std::uint64_t>(tree.document_->boundSymbol(n.op).symbol.index));
    if (n.kind != TreeNode::Kind::op)
      for (auto child = i + 1; child < n.end; child = tree.next(child)) hash = mix(hash, tree.node(child).structure);
    // Counts are not part of the structure: a place does not depend on them.
    for (const auto& flow : tree.flows(i)) {
      hash = mix(mix(hash, static_cast<std::uint32_t>(flow.from)), static_cast<std::uint32_t>(flow.to));
      hash = mix(hash, (flow.data > 0 ? 1u : 0u) | (flow.gradient + flow.accumulation > 0 ? 2u : 0u) |
                           (flow.downward > 0 ? 4u : 0u));
    }
    for (const auto& saved : tree.savedFlows(i))
      hash = mix(mix(hash, static_cast<std::uint32_t>(saved.from)), static_cast<std::uint32_t>(saved.to) + 1u);
    n.structure = hash;
  }
}

}  // namespace retrograd::layout
