#pragma once
#include <CLI/CLI.hpp>
#include <optional>

#include "core/base/tensor_meta.h"

namespace retrograd::cli {

/// "--dtype-b float64|float32|bfloat16|float16": the precision of the second side.
void addPrecisionB(CLI::App& app, std::optional<DType>& precision);

}  // namespace retrograd::cli
