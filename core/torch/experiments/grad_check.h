#pragma once
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// A range of a computation's ops as a model of its own: what flows in from before it are its user inputs, with the
/// tensors of a run of `analysis` as samples; what is used after it, or by nobody, are its outputs. `ops`: top-level
/// ops of the computation, in order, one after another. Throws Error(badUse) for ops that are not, and as running them
/// does.
ModelFile extractOps(const Analysis& analysis, const std::vector<BoundSymbolId>& ops, const Progress& progress = {});

/// How the gradient for one input of a range of ops compares.
struct GradientCheckRow {
  /// atKink: one-sided differences do not agree, so that there is no derivative. unknown: the ops give NaN or
  /// infinities there.
  enum class Verdict : std::uint8_t { right, wrong, atKink, unknown };
  std::string input;             ///< display name of the value
  double finiteDifferences = 0;  ///< relative difference of directional derivatives, the worst of the directions tried
  double libTorch = 0;           ///< relative difference to LibTorch's own autograd
  std::string note;              ///< what else is to be said: where the kink is, what was held constant; may be empty
  Verdict verdict = Verdict::right;
};

struct GradientCheck {
  std::vector<GradientCheckRow> rows;
  std::size_t directions = 0;
  bool passed = false;  ///< none is wrong
  /// Ops whose backward in PyTorch the file does not hold (lostBackwards()): of these nothing is said but that the
  /// derived gradient is the derivative.
  std::vector<std::string> lostBackwards;
  static constexpr double finiteTolerance = 1e-5, libTorchTolerance = 1e-9;
};

/// Checks the gradient of a range of ops in double precision: against differences along random directions, and against
/// LibTorch's autograd. Draws of random ops are the same each time; what a detach or an op without grad mode makes is
/// held constant, as the gradient holds it. A gradient with a NaN is wrong. Throws as extractOps() and analyse().
GradientCheck checkGradients(const Analysis& analysis, const std::vector<BoundSymbolId>& ops,
                             const Progress& progress = {});

}  // namespace retrograd
