#pragma once
#include <string>
#include <string_view>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// Part of a tensor in Python's notation, without the brackets: "1, :3, -1, ..., ::2". An index takes its dimension
/// away, a slice keeps it (positive steps), `...` represents the dimensions not named, which are whole. Dense memory on
/// the CPU; the result is a contiguous copy. Throws Error(badUse) that says what was expected, which index is outside,
/// or that there are too many.
TensorData sliced(const TensorData& tensor, std::string_view slice);

/// "t12[0, :4]" taken apart into the name and the slice; an empty slice where there are no brackets. Throws
/// Error(badUse) for a bracket that does not close.
std::pair<std::string, std::string> splitSlice(std::string_view text);

}  // namespace retrograd
