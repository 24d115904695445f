#pragma once
#include <string_view>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// A tensor of this type, the same for the same name and seed: floating and complex numbers normally distributed,
/// integers and truths 0 or 1.
TensorData drawnInput(const TensorMeta& meta, std::string_view name, std::uint64_t seed);
/// The same with zeros: each eighth element is 0, from the sixth on, or another one by the seed. Formulas often treat a
/// 0 apart.
TensorData withZeros(const TensorData& tensor, std::uint64_t seed);
/// A tensor of this type, each element of which is `number`.
TensorData filledTensor(const TensorMeta& meta, double number);

}  // namespace retrograd
