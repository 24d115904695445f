#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// Outputs and gradients of one run, named as Session names them: "in.x", "p.weight"; "b.buffer", "in.x" for what was
/// mutated.
struct RunResult {
  std::vector<std::optional<TensorData>> outputs;  ///< user outputs in order
  TensorMap gradients;
  TensorMap mutated;
};

class Evaluator;

/// Runs the joint trace in one go, without a session: the yardstick for forward and backward run apart. `after` is
/// called behind each op and may bind other values instead of its outputs.
RunResult runJoint(const Analysis& analysis, const std::function<void(Evaluator&, BoundSymbolId)>& after = {});

/// Runs the forward trace, then the backward trace on what it saved, the cotangents and nothing else.
RunResult runSplit(const Analysis& analysis);

/// Runs the computation op by op as eager PyTorch does and differentiates it with LibTorch's own autograd engine: the
/// oracle that shares nothing with the grad transform. `mutated` has what it really wrote, not what a trace says that
/// it writes. `roundedGradients`: where not 0, a seed by which each op's gradients in float32 and float64 are one
/// rounding step off.
RunResult runEager(const Analysis& analysis, std::uint64_t roundedGradients = 0);

/// LibTorch's eager forward and backward on the same inputs, in seconds.
struct EagerTimes {
  double forwardSeconds = 0, backwardSeconds = 0;
};
EagerTimes timeEager(const Analysis& analysis);

/// Runs the joint trace as runJoint does, with a few elements of each result of 16 bits one rounding step off: what is
/// left of such a result where the same formula is written in other ops of float32. `backwardOnly`: of results of the
/// backward alone.
RunResult runJointRounded(const Analysis& analysis, std::uint64_t seed, bool backwardOnly);
/// The same with each element of each result of float32 and float64 a few steps off: what the same formula in other ops
/// may leave where numbers cancel.
RunResult runRoundedByStep(const Analysis& analysis, std::uint64_t seed);

/// Every value that forward and backward compute, as it was right after its op ran; views of inputs and weights are
/// left out.
struct RunValues {
  std::map<ValueId, TensorData> tensors;  ///< views of one storage share memory, unless some op writes to it
  std::map<ValueId, Argument> numbers;
};

/// Runs forward and backward once. Throws Error(execution, cancelled) as Session does.
RunValues runValues(const Analysis& analysis, const Progress& progress = {});

}  // namespace retrograd
