#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// Compares tensors of one kind (all outputs, all gradients) and judges them together: differences are taken relative to the
/// largest value among the expected ones, because some gradients are zero but for rounding. NaN equals NaN, infinity equals the
/// same infinity. Complex tensors may be given as `view_as_real`. Written on TensorData, in double precision.
class Comparison {
 public:
  /// `anyFloatType`: a floating tensor may have another precision than expected.
  void add(const std::string& name, const TensorData& actual, const TensorData& expected, bool anyFloatType = false);
  /// Shape and dtype only.
  void addShape(const std::string& name, const TensorData& actual, const TensorData& expected);
  /// A difference no tolerance covers: a missing tensor, another shape.
  void fail(const std::string& name, std::string reason);

  /// Largest difference over the largest expected value; infinite after a failure.
  double error() const;
  /// The tensor of the largest difference, or of the first failure; empty where nothing differs.
  const std::string& worst() const { return worst_; }
  /// "grad.in.x: missing"; empty where nothing failed.
  const std::string& failure() const { return failure_; }
  std::size_t count() const { return count_; }

 private:
  bool sameShape(const std::string& name, const TensorData& actual, const TensorData& expected, bool anyFloatType);

  double largestDifference_ = 0, largestExpected_ = 0;
  std::string worst_, failure_;
  std::size_t count_ = 0;
};

/// The elements in order, as doubles; complex ones as real part, imaginary part. Eight-bit floats are given by their bits: they
/// are compared for equality only.
std::vector<double> asDoubles(const TensorData& tensor);

/// Same dtype, sizes and elements, bit for bit (strides may differ).
bool identical(const TensorData& a, const TensorData& b);

/// All elements are zero.
bool isZero(const TensorData& tensor);

}  // namespace retrograd
