#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/sizes/size_expression.h"

namespace retrograd {

/// A Python number as size arithmetic has it: bool, int or float. An int has 64 bits here; what does not fit is an
/// error.
struct Number {
  enum class Kind : std::uint8_t { boolean, integer, real };
  Kind kind = Kind::integer;
  std::int64_t integer = 0;  ///< boolean: 0 or 1
  double real = 0;

  static Number ofBool(bool b) { return {Kind::boolean, b, 0}; }
  static Number ofInt(std::int64_t i) { return {Kind::integer, i, 0}; }
  static Number ofReal(double d) { return {Kind::real, 0, d}; }

  bool isReal() const { return kind == Kind::real; }
  double asReal() const { return isReal() ? real : static_cast<double>(integer); }
  bool truth() const { return isReal() ? real != 0 : integer != 0; }
};

/// Python's order of numbers of any two kinds, exact: 2**53 + 1 is greater than 2.0**53. Unordered where one is NaN.
std::partial_ordering compare(const Number& a, const Number& b);

using NumberOperands = std::span<const Number>;

/// A function of Python on numbers, with Python's results, kinds of results and errors (CPython 3.11).
struct NumberFunction {
  std::string_view name;    ///< "_operator.floordiv", "math.cos", "builtins.round", "torch.sym_max"
  std::size_t least, most;  ///< how many operands it takes
  /// Takes `least` to `most` operands. Throws Error(badInput) where Python raises: a division by zero, a negative
  /// shift, a root of a negative number, an integer made of an infinity or a NaN, bits of a float; and where an int
  /// exceeds 64 bits.
  Number (*evaluate)(NumberOperands);
};

/// The function of this name, nullptr where there is none. These are all number operators that a file may use.
/// "torch.sym_cos" and "torch._sym_cos" are "math.cos".
const NumberFunction* findNumberFunction(std::string_view name);

/// What an expression over size symbols comes to as Python has it, a bool or a float included: "FloatTrueDiv(s0, 3)"
/// is 1.333... at s0 = 4. nullopt where a symbol is not bound, or Python would raise (a divisor is zero).
std::optional<Number> evaluateNumber(const SizeExpression& expression, const SizeBindings& bindings);

}  // namespace retrograd
