#include "core/grad/numbers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "core/base/error.h"

namespace retrograd {
namespace {

using Operands = std::vector<Argument>;
using Evaluate = std::function<Argument(const Operands&)>;

bool integral(const Operands& operands) {
  return std::all_of(operands.begin(), operands.end(), [](const Argument& a) { return a.kind == Argument::Kind::integer || a.kind == Argument::Kind::boolean; });
}

[[noreturn]] void divisionByZero() { throw Error(ErrorCode::badInput, "division by zero in size arithmetic"); }

std::int64_t floorDivide(std::int64_t a, std::int64_t b) {
  if (b == 0) divisionByZero();
  if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));  // the least integer overflows otherwise
  const auto quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// Python's integers do not overflow; ours wrap, without undefined behaviour.
template <class Op>
Evaluate arithmetic(Op op) {
  return [op](const Operands& v) {
    if (integral(v)) return Argument::ofInt(static_cast<std::int64_t>(op(static_cast<std::uint64_t>(v[0].integer), static_cast<std::uint64_t>(v[1].integer))));
    return Argument::ofReal(op(v[0].asDouble(), v[1].asDouble()));
  };
}

template <class Op>
Evaluate comparison(Op op) {
  return [op](const Operands& v) {
    return Argument::ofBool(integral(v) ? op(v[0].integer, v[1].integer) : op(v[0].asDouble(), v[1].asDouble()));
  };
}

Evaluate rounding(double (*round)(double)) {
  return [round](const Operands& v) { return integral(v) ? Argument::ofInt(v[0].integer) : Argument::ofInt(static_cast<std::int64_t>(round(v[0].asDouble()))); };
}

Evaluate real(double (*function)(double)) {
  return [function](const Operands& v) { return Argument::ofReal(function(v[0].asDouble())); };
}

bool truthy(const Argument& a) { return a.asDouble() != 0; }

Argument power(const Operands& v) {
  if (!integral(v) || v[1].integer < 0) return Argument::ofReal(std::pow(v[0].asDouble(), v[1].asDouble()));
  std::uint64_t result = 1, base = static_cast<std::uint64_t>(v[0].integer);
  for (auto exponent = static_cast<std::uint64_t>(v[1].integer); exponent; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return Argument::ofInt(static_cast<std::int64_t>(result));
}

Argument floorDivision(const Operands& v) {
  if (integral(v)) return Argument::ofInt(floorDivide(v[0].integer, v[1].integer));
  if (v[1].asDouble() == 0) divisionByZero();
  return Argument::ofReal(std::floor(v[0].asDouble() / v[1].asDouble()));
}

Argument modulo(const Operands& v) {
  if (integral(v)) return Argument::ofInt(v[0].integer - floorDivide(v[0].integer, v[1].integer) * v[1].integer);
  if (v[1].asDouble() == 0) divisionByZero();
  return Argument::ofReal(v[0].asDouble() - std::floor(v[0].asDouble() / v[1].asDouble()) * v[1].asDouble());
}

Argument trueDivision(const Operands& v) {
  if (v[1].asDouble() == 0) divisionByZero();
  return Argument::ofReal(v[0].asDouble() / v[1].asDouble());
}

Argument negate(const Operands& v) {
  return integral(v) ? Argument::ofInt(static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(v[0].integer))) : Argument::ofReal(-v[0].asDouble());
}

Argument largest(const Operands& v) {
  return *std::max_element(v.begin(), v.end(), [](const Argument& a, const Argument& b) { return a.asDouble() < b.asDouble(); });
}
Argument smallest(const Operands& v) {
  return *std::min_element(v.begin(), v.end(), [](const Argument& a, const Argument& b) { return a.asDouble() < b.asDouble(); });
}

struct NumberOp {
  std::size_t operands;
  Evaluate evaluate;
};

const std::map<std::string, NumberOp, std::less<>>& table() {
  static const std::map<std::string, NumberOp, std::less<>> ops{
      {"_operator.add", {2, arithmetic(std::plus<>())}},
      {"_operator.sub", {2, arithmetic(std::minus<>())}},
      {"_operator.mul", {2, arithmetic(std::multiplies<>())}},
      {"_operator.neg", {1, negate}},
      {"_operator.pos", {1, [](const Operands& v) { return v[0]; }}},
      {"_operator.abs", {1, [](const Operands& v) { return v[0].asDouble() < 0 ? negate(v) : v[0]; }}},
      {"_operator.truediv", {2, trueDivision}},
      {"_operator.floordiv", {2, floorDivision}},
      {"_operator.mod", {2, modulo}},
      {"_operator.pow", {2, power}},
      {"_operator.ge", {2, comparison(std::greater_equal<>())}},
      {"_operator.gt", {2, comparison(std::greater<>())}},
      {"_operator.le", {2, comparison(std::less_equal<>())}},
      {"_operator.lt", {2, comparison(std::less<>())}},
      {"_operator.eq", {2, comparison(std::equal_to<>())}},
      {"_operator.ne", {2, comparison(std::not_equal_to<>())}},
      {"_operator.and_", {2, [](const Operands& v) { return Argument::ofBool(truthy(v[0]) && truthy(v[1])); }}},
      {"_operator.or_", {2, [](const Operands& v) { return Argument::ofBool(truthy(v[0]) || truthy(v[1])); }}},
      {"_operator.not_", {1, [](const Operands& v) { return Argument::ofBool(!truthy(v[0])); }}},
      {"torch.sym_not", {1, [](const Operands& v) { return Argument::ofBool(!truthy(v[0])); }}},
      {"torch.sym_float", {1, [](const Operands& v) { return Argument::ofReal(v[0].asDouble()); }}},
      {"torch.sym_int", {1, rounding(std::trunc)}},
      {"torch.sym_max", {2, largest}},
      {"torch.sym_min", {2, smallest}},
      {"torch.sym_ite", {3, [](const Operands& v) { return truthy(v[0]) ? v[1] : v[2]; }}},
      {"torch._sym_sqrt", {1, real(std::sqrt)}},
      {"math.sqrt", {1, real(std::sqrt)}},
      {"math.log", {1, real(std::log)}},
      {"math.log2", {1, real(std::log2)}},
      {"math.exp", {1, real(std::exp)}},
      {"math.floor", {1, rounding(std::floor)}},
      {"math.ceil", {1, rounding(std::ceil)}},
      {"math.trunc", {1, rounding(std::trunc)}},
      {"builtins.round", {1, rounding(std::nearbyint)}},
      {"_operator.index", {1, [](const Operands& v) { return v[0]; }}},
  };
  return ops;
}

}  // namespace

std::optional<Argument> evaluateNumberOp(std::string_view op, const std::vector<Argument>& operands) {
  const auto it = table().find(op);
  if (it == table().end()) return std::nullopt;
  if (operands.size() < it->second.operands) throw Error(ErrorCode::badInput, "too few operands", std::string(op));
  for (const auto& operand : operands)
    if (!operand.isNumber()) throw Error(ErrorCode::badInput, "an operand is no number", std::string(op));
  return it->second.evaluate(operands);
}

}  // namespace retrograd
