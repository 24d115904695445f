#include "core/checking/curve.h"

#include <algorithm>

namespace retrograd {

std::vector<CurvePoint> budgetCurve(const std::string& path, const AnalysisOptions& options, int points, int repeat, const Progress& progress) {
  auto one = options;
  const auto saved = [&](PartitionOptions::Kind kind) {
    one.partition.kind = kind;
    one.partition.budget.reset();
    return bench(path, one, 1, progress).savedStorageBytes;
  };
  const auto most = saved(PartitionOptions::defaultKind), least = saved(PartitionOptions::minCut);
  std::vector<CurvePoint> curve;
  const auto steps = std::max(points, 2) - 1;
  for (int i = 0; i <= steps; ++i) {
    CurvePoint point;
    point.budget = least + (most - least) * i / steps;
    one.partition.kind = PartitionOptions::minCut;
    one.partition.budget = point.budget;
    const auto report = bench(path, one, repeat, progress);
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
