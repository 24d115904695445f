#include "core/torch/checking/curve.h"

#include <algorithm>

namespace retrograd {

std::vector<CurvePoint> budgetCurve(const OpenPartitioned& open, int points, int repeat, const Progress& progress) {
  const auto measure = [&](PartitionOptions::Kind kind, std::optional<std::int64_t> budget, int times) {
    return bench([&] { return open(kind, budget); }, times, progress);
  };
  const auto most = measure(PartitionOptions::defaultKind, {}, 1).savedStorageBytes,
             least = measure(PartitionOptions::minCut, {}, 1).savedStorageBytes;
  std::vector<CurvePoint> curve;
  const auto steps = std::max(points, 2) - 1;
  for (int i = 0; i <= steps; ++i) {
    CurvePoint point;
    point.budget = least + (most - least) * i / steps;
    const auto report = measure(PartitionOptions::minCut, point.budget, repeat);
    point.savedStorageBytes = report.savedStorageBytes;
    point.recomputedOps = report.recomputedOps;
    point.recompute = report.recompute;
    point.backward = report.backward;
    point.peakBytes = report.peakBytes;
    curve.push_back(point);
  }
  return curve;
}

nlohmann::ordered_json toJson(const std::vector<CurvePoint>& curve) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& point : curve)
    json.push_back({{"budget", point.budget},
                    {"saved_storage_bytes", point.savedStorageBytes},
                    {"recomputed_ops", point.recomputedOps},
                    {"recompute_seconds", point.recompute},
                    {"backward_seconds", point.backward},
                    {"peak_bytes", point.peakBytes}});
  return json;
}

}  // namespace retrograd
