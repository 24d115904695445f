#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/torch/checking/check.h"

namespace retrograd {

/// Medians in seconds and sizes in bytes. `savedBytes`: activations among what the forward saves (no parameters or
/// inputs, but views of these), elements times item size; `savedStorageBytes`: the distinct storages they keep alive,
/// each counted once.
struct BenchReport {
  /// By step, as in the JSON report. "recorded": forward and backward with statistics of every value; "recompute": of
  /// the backward's seconds, ops that run again.
  nlohmann::ordered_map<std::string, double> seconds;
  std::size_t recomputedOps = 0;
  OpCounts ops;
  std::int64_t savedBytes = 0, savedStorageBytes = 0, peakBytes = 0;
};

/// Opens (`open`) and runs a file `repeat` times, derives it with an empty and a warm rule cache, and runs LibTorch's
/// eager forward and backward on the same inputs. Throws as `open` and Session.
BenchReport bench(const std::function<std::shared_ptr<const Analysis>()>& open, int repeat,
                  const Progress& progress = {});

/// docs/bench.schema.json
nlohmann::ordered_json toJson(const BenchReport& report);

/// What a budget saves and what it costs.
struct CurvePoint {
  std::int64_t budget = 0;  ///< bytes that may be saved for backward
  BenchReport report;       ///< medians as bench() measures them; "backward" includes "recompute"
};

/// Bytes saved against time recomputed: `points` budgets (2 at least) from what min-cut needs at least to what is saved
/// without recomputation, evenly spaced, each measured as bench() does. `open` opens the model partitioned like that.
/// Throws as bench().
using OpenPartitioned =
    std::function<std::shared_ptr<const Analysis>(PartitionOptions::Kind, std::optional<std::int64_t> budget)>;
std::vector<CurvePoint> budgetCurve(const OpenPartitioned& open, int points, int repeat, const Progress& progress = {});

nlohmann::ordered_json toJson(const std::vector<CurvePoint>& curve);

}  // namespace retrograd
