#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/judge/claim.h"
#include "core/torch/session/replay.h"
#include "core/torch/steps/optimizer_updates.h"

namespace retrograd {

/// A place of a recorded step at which the gradient that went on is not the one that follows from the forward.
struct GradientCut {
  /// builtin: the derivative of an op of PyTorch; function: of a custom autograd.Function. detach, noGrad, inPlace:
  /// values went on behind autograd's back. saved: a custom Function keeps a value of its forward, without the history
  /// that a backward of its backward needs.
  enum class Kind : std::uint8_t { builtin, function, hook, detach, noGrad, inPlace, saved };
  Kind kind = Kind::builtin;
  BoundSymbolId op;              ///< of the recording: where it happened
  BoundSymbolId at;              ///< whose line it is: of a custom Function an op of its backward
  std::string name;              ///< of the Function, hook or op
  std::string line;              ///< "train.py:12 in backward"
  std::optional<double> factor;  ///< how many times the derivative the recorded gradient is; none: not one number
  std::string off;               ///< without a factor: "off by 0.2, largest element 1.1"
  double deviation = 0;          ///< of the element that is off most
  double scale = 0;              ///< of the largest element of the derivative
  std::string because;           ///< what is known of the cause
  bool nonFinite = false;        ///< NaN or infinite where the derivative is finite
  std::int32_t backward = 0;     ///< counted in the recording
  std::vector<std::string> parameters;  ///< whose gradients go through it, by name
};
/// A gradient of the recorded backward that could not be compared.
struct NotCompared {
  BoundSymbolId op;  ///< of the forward, whose derivative it would be; none for a parameter's own
  ValueId value;     ///< whose gradient it is; none: of all that the op read
  std::string why;
};

/// Retrograd's own derivatives of the recorded forward, compared with the gradients that the recorded backward gave.
struct StepOpinion {
  std::size_t compared = 0;              ///< gradients
  std::vector<NotCompared> notCompared;  ///< in the order of the backward
  std::vector<GradientCut> cuts;         ///< in the order of the backward
  std::vector<Claim> claims;             ///< what else is wrong, such as a recomputation that is not its forward
  std::set<std::string> judged;          ///< parameters whose gradient was compared
  std::map<std::string, std::string> notJudged;  ///< parameters whose gradient was not, or goes through one, and why
};

struct ReplayedStep {
  ReplayResult replay;
  StepOpinion opinion;
  OptimizerUpdates updates;
  std::vector<Claim> books;  ///< facts of the recording that need no second run
  BoundSymbolId root;        ///< made the first NaN or infinity, where the step is not sound; none: not known
};
/// Runs the step again (replay()) and derives the gradient of each op from what it read and from the gradient that
/// came in as recorded, so that a fault shows at its own op and nowhere else. Measures the updates, too.
ReplayedStep replayWithOpinion(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {});

}  // namespace retrograd
