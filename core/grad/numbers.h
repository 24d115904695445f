#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "core/trace/argument.h"

namespace retrograd {

/// Python-level arithmetic on sizes as torch.export keeps it: `_operator.mul`, `math.floor`, `torch.sym_max`, with Python's
/// semantics (floor division, modulo with the divisor's sign). nullopt: no such operator. Throws Error(badInput) on a division by
/// zero or an operand that is no number.
std::optional<Argument> evaluateNumberOp(std::string_view op, const std::vector<Argument>& operands);

}  // namespace retrograd
