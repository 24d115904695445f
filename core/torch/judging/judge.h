#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/judge/claim.h"
#include "core/torch/judging/noise.h"

namespace retrograd {

/// What rounding alone may do to an element of a tensor whose largest is `scale`, and which an op made of `terms`
/// numbers: the floor of a Judge's tolerance.
double roundingFloor(DType dtype, double scale, double terms);

/// Judges tensors that a model gives, each by its own tolerance:
///
///     tolerance = 4 * times * noise + scale * (8 * u(dtype) + u(accumulation) * sqrt(n))
///
/// with the tensor's noise (Noise; `times` of compare()), its largest expected magnitude `scale`, and the unit roundoff
/// u, half the distance from 1 to the next number. The second term is the floor: a few roundings of each element in the
/// tensor's own dtype (2 rather than 8 for float16 and bfloat16), and a sum of n terms, whose roundings add up like a
/// random walk; n is the number of elements of the largest tensor that the op which made this one reads, and half
/// floats accumulate in float32. Integers and booleans have no floor. A tensor that is zero but for rounding has no
/// floor to speak of; its noise is what eager's roundings leave there. Where the first estimate of the noise does not
/// cover a deviation, the refined one decides.
class Judge {
 public:
  /// `relative`: the tolerance of each tensor relative to its largest element, instead of all that.
  explicit Judge(std::shared_ptr<const Analysis> analysis, std::optional<double> relative = {},
                 Noise::Options noise = {});

  /// `name`: as namedResults(). `times`: of results that add up so many runs of the analysis.
  Measure compare(const std::string& name, const TensorData& actual, const TensorData& expected,
                  bool anyFloatType = false, double times = 1);

  Noise& noise() { return noise_; }

 private:
  double floorOf(const std::string& name, const TensorData& expected, double scale);
  double termsOf(const std::string& name);

  std::shared_ptr<const Analysis> analysis_;
  std::optional<double> relative_;
  Noise noise_;
  std::optional<std::map<std::string, double>> terms_;
};

}  // namespace retrograd
