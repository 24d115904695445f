#pragma once
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/torch/judging/compare.h"

namespace retrograd::test {

/// Several tensors compared, each by itself: a difference counts relative to the largest expected element of its own
/// tensor.
class Comparison {
 public:
  void add(const std::string& name, const TensorData& actual, const TensorData& expected, bool anyFloatType = false) {
    ++count_;
    auto found = difference(actual, expected, anyFloatType);
    if (!found.failure.empty()) return fail(name, std::move(found.failure));
    const auto error = found.deviation == 0 ? 0
                       : found.scale > 0    ? found.deviation / found.scale
                                            : std::numeric_limits<double>::infinity();
    if (error > error_) {
      error_ = error;
      if (failure_.empty()) worst_ = name;
    }
  }
  /// A difference no tolerance covers: a missing tensor, another shape.
  void fail(const std::string& name, std::string reason) {
    error_ = std::numeric_limits<double>::infinity();
    if (!failure_.empty()) return;
    failure_ = name + ": " + std::move(reason);
    worst_ = name;
  }

  /// The largest of the relative differences; infinite after a failure, and where something differs from a tensor of
  /// zeros.
  double error() const { return error_; }
  /// The tensor of the largest relative difference, or of the first failure; empty where nothing differs.
  const std::string& worst() const { return worst_; }
  /// "grad.in.x: missing"; empty where nothing failed.
  const std::string& failure() const { return failure_; }
  std::size_t count() const { return count_; }

 private:
  double error_ = 0;
  std::string worst_, failure_;
  std::size_t count_ = 0;
};

}  // namespace retrograd::test
