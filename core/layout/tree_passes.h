#pragma once
#include "core/layout/graph_tree.h"

namespace retrograd::layout {

/// Passes that buildTree() is made of, in this order.

/// Finds what ops make for one another and lifts it to the lowest common ancestors: flows, saved flows, saved bytes.
void liftEdges(GraphTree& tree, const Progress& progress);
/// Sizes of all boxes while closed.
void measureBoxes(GraphTree& tree);
/// Adds to a hash.
inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}
/// From the leaves up: equal sizes, children and flows are equal structures.
void hashStructure(GraphTree& tree);

}  // namespace retrograd::layout
