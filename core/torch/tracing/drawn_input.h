#pragma once
#include <string_view>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// A tensor of this type, the same for the same name and seed: floating and complex numbers normally distributed,
/// integers and truths 0 or 1.
TensorData drawnInput(const TensorMeta& meta, std::string_view name, std::uint64_t seed);
/// What flows into the backward by an output of this type: 1 for a loss, else drawn in the same way.
TensorData drawnCotangent(const TensorMeta& meta, bool isLoss, std::string_view name, std::uint64_t seed);

}  // namespace retrograd
