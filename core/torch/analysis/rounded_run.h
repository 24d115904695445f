#pragma once
#include <cstdint>

#include "core/torch/analysis/joint_run.h"

namespace retrograd {

/// Runs the joint trace as runJoint does, with a few elements of each result of 16 bits one rounding step off: what is
/// left of such a result where the same formula is written in other ops of float32. `backwardOnly`: of results of the
/// backward alone.
RunResult runJointRounded(const Analysis& analysis, std::uint64_t seed, bool backwardOnly);
/// The same with each element of each result of float32 and float64 a few steps off: what the same formula in other ops
/// may leave where numbers cancel.
RunResult runRoundedByStep(const Analysis& analysis, std::uint64_t seed);

}  // namespace retrograd
