#include "core/torch/grad/number_ops.h"

#include <string>

#include "core/base/error.h"
#include "core/sizes/number.h"

namespace retrograd {
namespace {

/// The numbers of an argument, those of a list one by one: torch.sym_sum takes a list.
void collect(const Argument& argument, std::vector<Number>& numbers) {
  switch (argument.kind) {
    case Argument::Kind::boolean: numbers.push_back(Number::ofBool(argument.integer != 0)); return;
    case Argument::Kind::integer: numbers.push_back(Number::ofInt(argument.integer)); return;
    case Argument::Kind::real: numbers.push_back(Number::ofReal(argument.real)); return;
    case Argument::Kind::list:
      for (const auto& item : argument.items) collect(item, numbers);
      return;
    default: throw Error(ErrorCode::badInput, "an operand is not a bool, int or float");
  }
}

Argument toArgument(const Number& number) {
  switch (number.kind) {
    case Number::Kind::boolean: return Argument::ofBool(number.integer != 0);
    case Number::Kind::integer: return Argument::ofInt(number.integer);
    case Number::Kind::real: break;
  }
  return Argument::ofReal(number.real);
}

}  // namespace

std::optional<Argument> evaluateNumberOp(std::string_view op, const std::vector<Argument>& operands) {
  const auto* function = findNumberFunction(op);
  if (!function) return std::nullopt;
  try {
    std::vector<Number> numbers;
    for (const auto& operand : operands) collect(operand, numbers);
    if (numbers.size() < function->least || numbers.size() > function->most)
      throw Error(ErrorCode::badInput, "it is given " + std::to_string(numbers.size()) + " numbers and takes " +
                                           std::to_string(function->least));
    return toArgument(function->evaluate(numbers));
  } catch (const Error& error) {
    throw error.at(op);
  }
}

}  // namespace retrograd
