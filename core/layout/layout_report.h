#pragma once
#include <nlohmann/json_fwd.hpp>

#include "core/layout/scene.h"

namespace retrograd::layout {

/// What a reader of the drawing has to follow, in figures: less is better in each. Lengths are in pixels at scale 1.
struct LayoutReport {
  std::int64_t boxes = 0;            ///< closed ones
  std::int64_t lines = 0;            ///< without origin links, which are off at first
  std::int64_t crossings = 0;        ///< of flows within their groups; one lane, for the other is its mirror image
  std::int64_t savedCrossings = 0;   ///< of saved tensors' lines on their way across
  std::int64_t edges = 0, rows = 0;  ///< flows, and the rows that they span
  double flowLength = 0, longestFlow = 0, savedLength = 0;  ///< all together, the longest, all together
  double treeSeconds = 0, layoutSeconds = 0;                ///< by the clock, dot's included
};

/// Lays a trace out as the window does, with dot where there is one: as it opens at first, or with every group open.
/// Throws Error(cancelled).
LayoutReport reportLayout(const Document& document, const Trace& trace, const Computation* computation, bool allOpen,
                          const Progress& progress = {});

nlohmann::ordered_json toJson(const LayoutReport& report);

}  // namespace retrograd::layout
