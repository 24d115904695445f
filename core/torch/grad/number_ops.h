#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "core/trace/argument.h"

namespace retrograd {

/// What a number operator of a file (core/sizes/number.h) makes of its operands: `_operator.mul`, `math.floor`,
/// `torch.sym_max`. nullopt: no such operator. Throws Error(badInput), which names the operator, where Python raises,
/// an int exceeds 64 bits or an operand is not a bool, int or float.
std::optional<Argument> evaluateNumberOp(std::string_view op, const std::vector<Argument>& operands);

}  // namespace retrograd
