#pragma once
#include "core/layout/scene.h"

namespace retrograd::layout {

/// What is tied to a box: the lines that its values run along to and from it, through the frames they cross, and the
/// boxes at their ends.
struct Reach {
  std::vector<std::int32_t> edges;  ///< of the scene, ascending
  std::vector<std::int32_t> boxes;  ///< closed ones, ascending; the box itself is not among them
};

/// Op-exact: of what a frame's merged lines carry, only what this box makes or reads. Looks at `most` values at most.
Reach reachOf(const Scene& scene, std::int32_t box, std::size_t most = 4000);

}  // namespace retrograd::layout
