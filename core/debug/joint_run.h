#pragma once
#include <optional>
#include <vector>

#include "core/debug/analysis.h"

namespace retrograd {

/// Outputs and gradients of one run, named as Session names them: "in.x", "p.weight"; "b.buffer", "in.x" for what was mutated.
struct RunResult {
  std::vector<std::optional<TensorData>> outputs;  ///< user outputs in order
  TensorMap gradients;
  TensorMap mutated;
};

/// Runs the joint trace in one go, without a session: the yardstick for forward and backward run apart.
RunResult runJoint(const Analysis& analysis);

/// Runs the forward trace, then the backward trace on what it saved, the cotangents and nothing else.
RunResult runSplit(const Analysis& analysis);

/// Runs the computation op by op as eager PyTorch does and differentiates it with LibTorch's own autograd engine: the oracle that
/// shares nothing with the grad transform.
RunResult runEager(const Analysis& analysis);

/// LibTorch's eager forward and backward on the same inputs, in seconds.
struct EagerTimes {
  double forwardSeconds = 0, backwardSeconds = 0;
};
EagerTimes timeEager(const Analysis& analysis);

}  // namespace retrograd
