#pragma once
#include <optional>

namespace retrograd {

/// What an update of an optimizer did to a parameter; none: not known, or not finite.
struct UpdateNumbers {
  std::optional<double> clipFactor;  ///< what clipping multiplied the gradient by
  std::optional<double> norm;        ///< of what was added to the parameter; NaN or infinite where it is not finite
  std::optional<double> ratio;       ///< that norm over the parameter's
};

}  // namespace retrograd
