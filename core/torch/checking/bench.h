#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/torch/checking/check.h"

namespace retrograd {

/// Medians in seconds and sizes in bytes. `savedBytes`: activations among what the forward saves (no parameters or
/// inputs, but views of these), elements times item size; `savedStorageBytes`: the distinct storages they keep alive,
/// each counted once.
struct BenchReport {
  double read = 0, trace = 0, joint = 0, jointWarm = 0, split = 0, forward = 0, backward = 0, eagerForward = 0,
         eagerBackward = 0;
  double recorded = 0;   ///< forward and backward with statistics of every value
  double recompute = 0;  ///< of the backward's seconds: ops that run again
  std::size_t recomputedOps = 0;
  OpCounts ops;
  std::int64_t savedBytes = 0, savedStorageBytes = 0, peakBytes = 0;

  /// The times by the names of the JSON report.
  std::vector<std::pair<std::string, double>> seconds() const;
};

/// Opens (`open`) and runs a file `repeat` times, derives it with an empty and a warm rule cache, and runs LibTorch's
/// eager forward and backward on the same inputs. Throws as `open` and Session.
BenchReport bench(const std::function<std::shared_ptr<const Analysis>()>& open, int repeat,
                  const Progress& progress = {});

/// docs/bench.schema.json
nlohmann::ordered_json toJson(const BenchReport& report);

}  // namespace retrograd
