#pragma once
#include "core/torch/checking/bench.h"

namespace retrograd {

/// What a budget saves and what it costs.
struct CurvePoint {
  std::int64_t budget = 0;             ///< bytes that may be saved for backward
  std::int64_t savedStorageBytes = 0;  ///< that are saved, storages counted once
  std::size_t recomputedOps = 0;
  double recompute = 0, backward = 0;  ///< seconds, medians; `backward` includes `recompute`
  std::int64_t peakBytes = 0;
};

/// Bytes saved against time recomputed: `points` budgets (2 at least) from what min-cut needs at least to what is saved
/// without recomputation, evenly spaced, each measured as bench() does. `open` opens the model partitioned like that.
/// Throws as bench().
using OpenPartitioned =
    std::function<std::shared_ptr<const Analysis>(PartitionOptions::Kind, std::optional<std::int64_t> budget)>;
std::vector<CurvePoint> budgetCurve(const OpenPartitioned& open, int points, int repeat, const Progress& progress = {});

nlohmann::ordered_json toJson(const std::vector<CurvePoint>& curve);

}  // namespace retrograd
