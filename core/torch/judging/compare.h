#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/judge/claim.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// Of a complex dtype that of its parts; any other one as it is.
DType realType(DType dtype);

/// The tensor of this name; null where there is none.
const TensorData* findTensor(const TensorMap& map, const std::string& name);

/// Compares element by element, in double precision, with no tolerance. NaN equals NaN, infinity equals the same
/// infinity. Floats of eight bits differ or do not, by their bits. Complex tensors may be given as `view_as_real`.
/// `anyFloatType`: a floating tensor may have another precision than expected.
Measure difference(const TensorData& actual, const TensorData& expected, bool anyFloatType = false);
/// Shape and dtype only: the failure, empty where they agree.
std::string shapeDifference(const TensorData& actual, const TensorData& expected, bool anyFloatType = false);

/// NaN and infinities among the elements.
struct NonFinite {
  std::size_t nan = 0, infinite = 0;
};
NonFinite countNonFinite(const TensorData& tensor);

/// The elements in order, as doubles; complex ones as real part, imaginary part. Eight-bit floats are given by their
/// bits: they are compared for equality only.
std::vector<double> asDoubles(const TensorData& tensor);

/// The factor by which each of the named tensors of `expected` is that of `actual`; nothing where there is no one
/// factor for all, to a thousandth.
std::optional<double> commonFactor(const std::set<std::string>& names, const TensorMap& actual,
                                   const TensorMap& expected);

/// Same dtype, sizes and elements, bit for bit (strides may differ).
bool identical(const TensorData& a, const TensorData& b);

/// All elements are zero.
bool isZero(const TensorData& tensor);

/// Same dtype and sizes, and each element of `a` is that of `b` times `factor`. NaN is that of NaN.
bool isTimes(const TensorData& a, const TensorData& b, double factor);

/// The elements row by row from the begin of their memory: a copy, unless they lie so already.
TensorData rowByRow(const TensorData& tensor);

/// `tensor`, row by row, with the elements of `other` where its own are NaN or infinite and those of `other` are not. A
/// complex element is taken whole. Both have the same dtype and sizes.
TensorData finiteOr(const TensorData& tensor, const TensorData& other);

}  // namespace retrograd
