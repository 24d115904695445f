#pragma once
#include "core/layout/graph_tree.h"

namespace retrograd::layout {

/// Passes that buildTree() is made of, in this order.

/// Finds what ops make for one another and lifts it to the lowest common ancestors: flows, saved flows, saved bytes.
void liftEdges(GraphTree& tree, const Progress& progress);
/// Sizes of all boxes while closed.
void measureBoxes(GraphTree& tree);
/// From the leaves up: equal sizes, children and flows are equal structures.
void hashStructure(GraphTree& tree);

}  // namespace retrograd::layout
