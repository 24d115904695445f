#pragma once
#include <string>

#include "core/base/tensor_statistics.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// An input of a computation that has NaN or infinities itself, for people: "the input x, inf at [5, 3] (1 of 192
/// elements)", "the parameter layer.weight, ...". The places are left out where its numbers are not at hand, as those
/// of a cotangent. `statistics`: of `value`.
std::string badInputText(const Analysis& analysis, ValueId value, const TensorStatistics& statistics);

/// Whether a text is one of badInputText().
bool isBadInputText(const std::string& text);

}  // namespace retrograd
