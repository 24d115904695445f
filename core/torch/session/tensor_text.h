#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// Elements as nested brackets, like PyTorch prints them; along each dimension at most `edge` from either end.
/// Contiguous data.
std::string tensorText(const TensorData& tensor, std::int64_t edge = 3);
/// {"dtype", "sizes", "elements": nested lists, whole up to 1000 elements, else "elements_left_out": true}. NaN and
/// infinities are strings.
nlohmann::ordered_json tensorJson(const TensorData& tensor);

}  // namespace retrograd
