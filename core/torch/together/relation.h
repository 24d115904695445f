#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace retrograd {

/// What is known of one rank's gradient: in double precision, flat.
struct GradientSides {
  at::Tensor read;                ///< as an update read it
  std::vector<at::Tensor> parts;  ///< of each unit, in the order of `ranks`: what should be put together
  std::vector<std::int64_t> ranks;
  std::size_t self = 0;  ///< this rank's among the parts
  at::Tensor copy;       ///< this rank's copy alone, where its unit has several; else undefined
  at::Tensor last;       ///< of this rank's own part that of the last backward; undefined where there is one only
  std::vector<at::Tensor> lasts;   ///< the same of all parts; empty where not known
  std::vector<at::Tensor> priors;  ///< what ranks had made before and nothing read, when the last backward began anew
  double floor = 0;                ///< rounding on the way to it, where its terms cancel
  double epsilon = 1.2e-7;         ///< of the dtypes that it went through
  std::int32_t terms = 1;          ///< numbers that were added
};

/// How a gradient is related to what it has to be.
struct Relation {
  bool holds = false;
  std::string kind;      ///< "gradient-own-part", "gradient-scaled", "gradient-wrong-group", "gradient-imprecise", ...
  std::string sentence;  ///< "rank 0 has its own part, the mean over [0, 1] is needed"
  double deviation = 0, tolerance = 0, scale = 0;
  double factor = 0;  ///< how many times the mean of the parts it is; 0: no one number
};
/// `isSum`: the sum of the parts is needed rather than their mean.
Relation relationOf(const GradientSides& sides, bool isSum, const std::string& precision);

}  // namespace retrograd
