#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// The other names under which the weights hold the tensor of this name, in the Python program's words ("head.weight"):
/// the same memory, or the same bits, as a file has them that writes each name by itself. Elements that are all alike
/// tie nothing: many parameters begin with ones or zeros.
std::vector<std::string> tiedNames(const TensorMap& weights, std::string_view name);

}  // namespace retrograd
