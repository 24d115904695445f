#pragma once
#include "core/questions/why.h"

namespace retrograd {

/// whyNoGradient() of a recorded step, for a value without a gradient: ways go along the recorded forward, and end
/// where the recorder saw that autograd did not follow. Only where what goes on leads to a loss, if any way does.
std::vector<GradientStop> recordedStops(const Analysis& analysis, ValueId value);

/// Parameters that got no gradient for the same reason.
struct NoGradientCause {
  std::vector<std::string> parameters;  ///< by name
  std::optional<GradientStop> stop;     ///< none: no way could be followed
  std::string reason, line;  ///< "torch.ops.aten.detach.default cuts it off", "train.py:12 in forward"; may be empty
};
/// `parameters`: of a recording, by name, none of which has a gradient.
std::vector<NoGradientCause> causesOfNoGradient(const Analysis& analysis, const std::vector<std::string>& parameters);

}  // namespace retrograd
