#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/torch/session/replay.h"
#include "core/torch/steps/optimizer_updates.h"

namespace retrograd {

/// A place of a recorded step at which the gradient that went on is not the one that follows from the forward.
struct GradientCut {
  /// builtin: the derivative of an op of PyTorch; function: of a custom autograd.Function. detach, noGrad, inPlace:
  /// values went on behind autograd's back.
  enum class Kind : std::uint8_t { builtin, function, hook, detach, noGrad, inPlace };
  Kind kind = Kind::builtin;
  BoundSymbolId op;              ///< of the recording: where it happened
  BoundSymbolId at;              ///< whose line it is: of a custom Function an op of its backward
  std::string name;              ///< of the Function, hook or op
  std::string line;              ///< "train.py:12 in backward"
  std::optional<double> factor;  ///< how many times the derivative the recorded gradient is; none: not one number
  std::string off;               ///< without a factor: "off by 0.2, largest element 1.1"
  std::string because;           ///< what is known of the cause
  bool nonFinite = false;        ///< NaN or infinite where the derivative is finite
  std::int32_t backward = 0;     ///< counted in the recording
  std::vector<std::string> parameters;  ///< whose gradients go through it, by name
};
std::string_view name(GradientCut::Kind kind);
/// "`MyGelu`: 0.59 times the derivative; train.py:12 in backward; behind it: first.weight and 3 more"
std::string describe(const GradientCut& cut);

/// Retrograd's own derivatives of the recorded forward, compared with the gradients that the recorded backward gave.
struct StepOpinion {
  std::size_t compared = 0;        ///< gradients
  std::size_t notCompared = 0;     ///< ops whose gradients could not be compared
  std::vector<GradientCut> cuts;   ///< in the order of the backward
  std::vector<std::string> notes;  ///< why some were not compared
};

struct ReplayedStep {
  ReplayResult replay;
  StepOpinion opinion;
  OptimizerUpdates updates;
  BoundSymbolId root;  ///< made the first NaN or infinity, where the step is not sound; none: not known
};
/// Runs the step again (replay()) and derives the gradient of each op from what it read and from the gradient that
/// came in as recorded, so that a fault shows at its own op and nowhere else. Measures the updates, too.
ReplayedStep replayWithOpinion(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {});

/// What makes a cut a fault; empty: it is none. `good`: the opinion on a recording that is right, whose cuts are meant;
/// may be null.
std::string faultOf(const GradientCut& cut, const StepRecording& recording, bool strict, const StepOpinion* good);

}  // namespace retrograd
