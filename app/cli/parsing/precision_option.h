#pragma once
#include <optional>

#include "app/cli/parsing/parser.h"
#include "core/base/tensor_meta.h"

namespace retrograd::cli {

/// "--dtype-b float64|float32|bfloat16|float16": the precision of the second side.
void addPrecisionB(Parser parser, std::optional<DType>& precision);

}  // namespace retrograd::cli
