#pragma once
// The elements of a tensor: how they read, and which of them is sought.
#include <QString>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/trace/tensor_data.h"

namespace retrograd::views {

/// One element of contiguous data as text.
QString elementText(const TensorData& data, std::int64_t element);
/// The same as a number; complex ones by absolute value, truth values as 0 and 1.
double elementNumber(const TensorData& data, std::int64_t element);

/// Elements that people ask for.
enum class Element : std::uint8_t { largest, smallest, largestMagnitude, firstNan };

/// The index of the first such element, one number for each dim. NaN is neither largest nor smallest, complex numbers
/// count by absolute value; nullopt where there is none. `data`: contiguous, on the CPU. Looks at all of it: on the
/// worker.
std::optional<std::vector<std::int64_t>> findElement(const TensorData& data, Element wanted, const Progress& progress);

/// "[0, 3]".
std::string indexText(const std::vector<std::int64_t>& index);

}  // namespace retrograd::views
