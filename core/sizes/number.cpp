// The one place that knows Python's arithmetic: derivation, eager runs, size expressions and the text reader all ask
// it.
#include "core/sizes/number.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "core/base/error.h"

namespace retrograd {
namespace {

__extension__ typedef __int128 Wide;  // no ISO C++, but GCC's and Clang's
__extension__ typedef unsigned __int128 UnsignedWide;

constexpr double beyondInt64 = 9223372036854775808.0;  // 2^63

[[noreturn]] void overflow() { badInput("the result does not fit in an integer of 64 bits"); }
[[noreturn]] void divisionByZero() { badInput("division by zero"); }

bool integral(NumberOperands v) {
  return std::none_of(v.begin(), v.end(), [](const Number& n) { return n.isReal(); });
}
bool boolean(NumberOperands v) {
  return std::all_of(v.begin(), v.end(), [](const Number& n) { return n.kind == Number::Kind::boolean; });
}
void requireIntegers(NumberOperands v) {
  if (!integral(v)) badInput("it takes integers, not floats");
}

Number toInteger(double d) {
  if (std::isnan(d)) badInput("a NaN cannot become an integer");
  if (std::isinf(d)) badInput("an infinity cannot become an integer");
  if (!(d >= -beyondInt64 && d < beyondInt64)) overflow();
  return Number::ofInt(static_cast<std::int64_t>(d));
}

// Arithmetic.

Number add(NumberOperands v) {
  std::int64_t sum = 0;
  if (!integral(v)) return Number::ofReal(v[0].asReal() + v[1].asReal());
  if (__builtin_add_overflow(v[0].integer, v[1].integer, &sum)) overflow();
  return Number::ofInt(sum);
}
Number subtract(NumberOperands v) {
  std::int64_t difference = 0;
  if (!integral(v)) return Number::ofReal(v[0].asReal() - v[1].asReal());
  if (__builtin_sub_overflow(v[0].integer, v[1].integer, &difference)) overflow();
  return Number::ofInt(difference);
}
Number multiply(NumberOperands v) {
  std::int64_t product = 0;
  if (!integral(v)) return Number::ofReal(v[0].asReal() * v[1].asReal());
  if (__builtin_mul_overflow(v[0].integer, v[1].integer, &product)) overflow();
  return Number::ofInt(product);
}
Number sum(NumberOperands v) {
  Number total = Number::ofInt(0);
  for (const auto& n : v) total = add(std::array{total, n});
  return total;
}
Number negate(NumberOperands v) {
  return v[0].isReal() ? Number::ofReal(-v[0].real) : subtract(std::array{Number::ofInt(0), v[0]});
}
Number positive(NumberOperands v) { return v[0].isReal() ? v[0] : Number::ofInt(v[0].integer); }
Number absolute(NumberOperands v) {
  if (v[0].isReal()) return Number::ofReal(std::abs(v[0].real));
  return v[0].integer < 0 ? negate(v) : positive(v);
}

struct Division {
  double quotient = 0, rest = 0;
};

/// CPython's float_divmod: the rest has the divisor's sign, and the quotient is made from it, so that it is exact where
/// the division is not.
Division divideFloor(double a, double b) {
  if (b == 0) divisionByZero();
  Division result;
  result.rest = std::fmod(a, b);
  double quotient = (a - result.rest) / b;
  if (result.rest != 0) {
    if ((b < 0) != (result.rest < 0)) {
      result.rest += b;
      quotient -= 1;
    }
  } else {
    result.rest = std::copysign(0.0, b);
  }
  if (quotient != 0) {
    result.quotient = std::floor(quotient);
    if (quotient - result.quotient > 0.5) result.quotient += 1;
  } else {
    result.quotient = std::copysign(0.0, a / b);
  }
  return result;
}

Number floorDivide(NumberOperands v) {
  if (!integral(v)) return Number::ofReal(divideFloor(v[0].asReal(), v[1].asReal()).quotient);
  const auto a = v[0].integer, b = v[1].integer;
  if (b == 0) divisionByZero();
  if (b == -1) return negate(v.first(1));  // the one quotient that may not fit
  return Number::ofInt(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
}
Number modulo(NumberOperands v) {
  if (!integral(v)) return Number::ofReal(divideFloor(v[0].asReal(), v[1].asReal()).rest);
  const auto a = v[0].integer, b = v[1].integer;
  if (b == 0) divisionByZero();
  if (b == -1) return Number::ofInt(0);  // the least integer % -1 is undefined in C++
  const auto rest = a % b;
  return Number::ofInt(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

/// a / b rounded once, as Python does: operands of more than 53 bits must not be rounded first.
double quotientOf(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  if (a >= -exact && a <= exact && b >= -exact && b <= exact) return static_cast<double>(a) / static_cast<double>(b);
  const auto magnitude = [](std::int64_t n) {
    return n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  };
  const auto top = magnitude(a), bottom = magnitude(b);
  // So many bits that the quotient has at least 62: more than a double holds, so the last one can stand for the rest.
  const int shift = std::max(0, 62 - static_cast<int>(std::bit_width(top)) + static_cast<int>(std::bit_width(bottom)));
  const auto scaled = static_cast<UnsignedWide>(top) << shift;
  const auto quotient = static_cast<std::uint64_t>(scaled / bottom) | static_cast<std::uint64_t>(scaled % bottom != 0);
  const double result = std::ldexp(static_cast<double>(quotient), -shift);
  return (a < 0) != (b < 0) ? -result : result;
}
Number trueDivide(NumberOperands v) {
  if (v[1].asReal() == 0) divisionByZero();
  return Number::ofReal(integral(v) ? quotientOf(v[0].integer, v[1].integer) : v[0].asReal() / v[1].asReal());
}

Number realPower(double base, double exponent) {
  if (base == 0 && exponent < 0 && std::isfinite(exponent)) badInput("zero to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && std::trunc(exponent) != exponent)
    badInput("a negative number to a fractional power is complex");
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent))
    badInput("the result does not fit in a float");
  return Number::ofReal(result);
}
Number power(NumberOperands v) {
  if (!integral(v) || v[1].integer < 0) return realPower(v[0].asReal(), v[1].asReal());
  std::int64_t result = 1, base = v[0].integer;
  for (auto exponent = v[1].integer;;) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) overflow();
    exponent >>= 1;
    if (exponent == 0) return Number::ofInt(result);
    if (__builtin_mul_overflow(base, base, &base)) overflow();
  }
}
Number mathPower(NumberOperands v) {
  const double base = v[0].asReal(), exponent = v[1].asReal(), result = std::pow(base, exponent);
  if (!std::isfinite(base) || !std::isfinite(exponent)) return Number::ofReal(result);
  if (std::isnan(result) || (std::isinf(result) && base == 0)) badInput("math domain error");
  if (std::isinf(result)) badInput("the result does not fit in a float");
  return Number::ofReal(result);
}

// Bits. Two bools give a bool, as in Python; ~True is -2.

template <class Op>
Number bits(NumberOperands v) {
  requireIntegers(v);
  const auto result = static_cast<std::int64_t>(
      Op()(static_cast<std::uint64_t>(v[0].integer), static_cast<std::uint64_t>(v[1].integer)));
  return boolean(v) ? Number::ofBool(result != 0) : Number::ofInt(result);
}
Number invert(NumberOperands v) {
  requireIntegers(v);
  return Number::ofInt(~v[0].integer);
}
void requireShift(NumberOperands v) {
  requireIntegers(v);
  if (v[1].integer < 0) badInput("a shift by a negative count");
}
Number shiftLeft(NumberOperands v) {
  requireShift(v);
  const auto n = v[0].integer, count = v[1].integer;
  if (n == 0) return Number::ofInt(0);
  if (count > 63) overflow();
  const auto shifted = static_cast<std::int64_t>(static_cast<std::uint64_t>(n) << count);
  if (shifted >> count != n) overflow();
  return Number::ofInt(shifted);
}
Number shiftRight(NumberOperands v) {
  requireShift(v);
  return Number::ofInt(v[0].integer >> std::min<std::int64_t>(v[1].integer, 63));
}

// Truth and order.

template <class Op>
Number comparison(NumberOperands v) {
  return Number::ofBool(Op()(compare(v[0], v[1])));
}
struct Equal {
  bool operator()(std::partial_ordering o) const { return o == 0; }
};
struct Unequal {
  bool operator()(std::partial_ordering o) const { return o != 0; }
};
struct Less {
  bool operator()(std::partial_ordering o) const { return o < 0; }
};
struct Greater {
  bool operator()(std::partial_ordering o) const { return o > 0; }
};
struct AtMost {
  bool operator()(std::partial_ordering o) const { return o <= 0; }
};
struct AtLeast {
  bool operator()(std::partial_ordering o) const { return o >= 0; }
};

Number truth(NumberOperands v) { return Number::ofBool(v[0].truth()); }
Number negation(NumberOperands v) { return Number::ofBool(!v[0].truth()); }
Number choose(NumberOperands v) { return v[0].truth() ? v[1] : v[2]; }

/// torch.sym_max and sym_min: Python's max and min (the first of equals), as a float where one is a float.
Number asCommonKind(const Number& chosen, NumberOperands v) {
  return integral(v) ? chosen : Number::ofReal(chosen.asReal());
}
Number largest(NumberOperands v) { return asCommonKind(compare(v[1], v[0]) > 0 ? v[1] : v[0], v); }
Number smallest(NumberOperands v) { return asCommonKind(compare(v[1], v[0]) < 0 ? v[1] : v[0], v); }

// Kinds and rounding.

Number toReal(NumberOperands v) { return Number::ofReal(v[0].asReal()); }
Number index(NumberOperands v) {
  requireIntegers(v);
  return Number::ofInt(v[0].integer);
}
double floorOf(double d) { return std::floor(d); }
double ceilOf(double d) { return std::ceil(d); }
double truncOf(double d) { return std::trunc(d); }
double nearestOf(double d) { return std::nearbyint(d); }  // halves to even
template <double (*round)(double)>
Number rounded(NumberOperands v) {
  return v[0].isReal() ? toInteger(round(v[0].real)) : Number::ofInt(v[0].integer);
}

/// The multiple of 10**places next to n, the even one of two that are equally near.
Number roundToTens(std::int64_t n, std::int64_t places) {
  if (places > 19) return Number::ofInt(0);
  Wide step = 1;
  for (std::int64_t i = 0; i < places; ++i) step *= 10;
  Wide low = n / step - (n % step < 0 ? 1 : 0);
  const auto twice = 2 * (n - low * step);
  if (twice > step || (twice == step && (low & 1))) ++low;
  const auto result = low * step;
  if (result > std::numeric_limits<std::int64_t>::max() || result < std::numeric_limits<std::int64_t>::min())
    overflow();
  return Number::ofInt(static_cast<std::int64_t>(result));
}
double readReal(const char* begin, const char* end) {
  double result = 0;
  if (std::from_chars(begin, end, result).ec != std::errc()) badInput("the result does not fit in a float");
  return result;
}
/// d rounded to `digits` behind the point (before it where negative), decided by its exact decimal digits, as Python
/// does.
Number roundToDigits(double d, std::int64_t digits) {
  constexpr std::int64_t most = 323;  // no double has a digit beyond
  if (!std::isfinite(d) || digits > most) return Number::ofReal(d);
  std::array<char, 800> text;
  auto *begin = text.data(), *end = begin + text.size();
  if (digits >= 0)
    return Number::ofReal(
        readReal(begin, std::to_chars(begin, end, d, std::chars_format::fixed, static_cast<int>(digits)).ptr));
  const auto whole = std::to_chars(begin, end, std::trunc(std::abs(d)), std::chars_format::fixed, 0).ptr - begin;
  const auto kept = whole + digits;
  if (kept < 0) return Number::ofReal(std::copysign(0.0, d));
  if (kept > 0)
    return Number::ofReal(
        readReal(begin, std::to_chars(begin, end, d, std::chars_format::scientific, static_cast<int>(kept - 1)).ptr));
  const auto power = "e" + std::to_string(-digits), half = "0.5" + power, one = "1" + power;
  const bool up = std::abs(d) > readReal(half.data(), half.data() + half.size());
  return Number::ofReal(std::copysign(up ? readReal(one.data(), one.data() + one.size()) : 0.0, d));
}
Number round(NumberOperands v) {
  if (v.size() == 1) return rounded<nearestOf>(v);
  requireIntegers(v.subspan(1));
  const auto digits = v[1].integer;
  if (v[0].isReal()) return roundToDigits(v[0].real, digits);
  return digits >= 0 ? Number::ofInt(v[0].integer) : roundToTens(v[0].integer, -digits);
}

// Functions of the math module. CPython's rule for errors: NaN out of no NaN is outside of the domain, infinity out of
// a finite number an overflow or, for functions that do not overflow, outside of the domain too.

template <double (*function)(double), bool canOverflow = false>
Number real(NumberOperands v) {
  const double x = v[0].asReal(), result = function(x);
  if ((std::isnan(result) && !std::isnan(x)) || (std::isinf(result) && std::isfinite(x) && !canOverflow))
    badInput("math domain error");
  if (std::isinf(result) && std::isfinite(x)) badInput("the result does not fit in a float");
  return Number::ofReal(result);
}
Number logarithm(NumberOperands v) {
  const auto natural = [&](std::size_t i) { return real<std::log>(v.subspan(i, 1)); };
  return v.size() == 1 ? natural(0) : trueDivide(std::array{natural(0), natural(1)});
}
Number isNaN(NumberOperands v) { return Number::ofBool(std::isnan(v[0].asReal())); }

constexpr auto any = std::numeric_limits<std::size_t>::max();

constexpr auto functions = std::to_array<NumberFunction>({
    {"_operator.add", 2, 2, add},
    {"_operator.iadd", 2, 2, add},
    {"_operator.sub", 2, 2, subtract},
    {"_operator.mul", 2, 2, multiply},
    {"_operator.truediv", 2, 2, trueDivide},
    {"_operator.floordiv", 2, 2, floorDivide},
    {"_operator.mod", 2, 2, modulo},
    {"_operator.pow", 2, 2, power},
    {"_operator.neg", 1, 1, negate},
    {"_operator.pos", 1, 1, positive},
    {"_operator.abs", 1, 1, absolute},
    {"_operator.eq", 2, 2, comparison<Equal>},
    {"_operator.ne", 2, 2, comparison<Unequal>},
    {"_operator.lt", 2, 2, comparison<Less>},
    {"_operator.le", 2, 2, comparison<AtMost>},
    {"_operator.gt", 2, 2, comparison<Greater>},
    {"_operator.ge", 2, 2, comparison<AtLeast>},
    {"_operator.and_", 2, 2, bits<std::bit_and<>>},
    {"_operator.or_", 2, 2, bits<std::bit_or<>>},
    {"_operator.xor", 2, 2, bits<std::bit_xor<>>},
    {"_operator.invert", 1, 1, invert},
    {"_operator.lshift", 2, 2, shiftLeft},
    {"_operator.rshift", 2, 2, shiftRight},
    {"_operator.not_", 1, 1, negation},
    {"_operator.truth", 1, 1, truth},
    {"_operator.index", 1, 1, index},
    {"builtins.abs", 1, 1, absolute},
    {"builtins.round", 1, 2, round},
    {"torch.sym_float", 1, 1, toReal},
    {"torch.sym_int", 1, 1, rounded<truncOf>},
    {"torch.sym_max", 2, 2, largest},
    {"torch.sym_min", 2, 2, smallest},
    {"torch.sym_sum", 0, any, sum},
    {"torch.sym_not", 1, 1, negation},
    {"torch.sym_ite", 3, 3, choose},
    {"math.ceil", 1, 1, rounded<ceilOf>},
    {"math.floor", 1, 1, rounded<floorOf>},
    {"math.trunc", 1, 1, rounded<truncOf>},
    {"math.sqrt", 1, 1, real<std::sqrt>},
    {"math.cos", 1, 1, real<std::cos>},
    {"math.cosh", 1, 1, real<std::cosh, true>},
    {"math.sin", 1, 1, real<std::sin>},
    {"math.sinh", 1, 1, real<std::sinh, true>},
    {"math.tan", 1, 1, real<std::tan>},
    {"math.tanh", 1, 1, real<std::tanh>},
    {"math.asin", 1, 1, real<std::asin>},
    {"math.acos", 1, 1, real<std::acos>},
    {"math.atan", 1, 1, real<std::atan>},
    {"math.exp", 1, 1, real<std::exp, true>},
    {"math.log", 1, 2, logarithm},
    {"math.log2", 1, 1, real<std::log2>},
    {"math.pow", 2, 2, mathPower},
    {"math.fabs", 1, 1, real<std::fabs>},
    {"math.isnan", 1, 1, isNaN},
});

const NumberFunction* named(std::string_view name) {
  const auto* it =
      std::find_if(functions.begin(), functions.end(), [&](const NumberFunction& f) { return f.name == name; });
  return it == functions.end() ? nullptr : it;
}

}  // namespace

std::partial_ordering compare(const Number& a, const Number& b) {
  if (a.isReal() == b.isReal()) return a.isReal() ? a.real <=> b.real : std::partial_ordering(a.integer <=> b.integer);
  if (a.isReal()) return 0 <=> compare(b, a);
  if (std::isnan(b.real)) return std::partial_ordering::unordered;
  if (b.real >= beyondInt64) return std::partial_ordering::less;
  if (b.real < -beyondInt64) return std::partial_ordering::greater;
  const double whole = std::trunc(b.real);
  if (const auto order = a.integer <=> static_cast<std::int64_t>(whole); order != 0) return order;
  return whole <=> b.real;
}

const NumberFunction* findNumberFunction(std::string_view name) {
  for (std::string_view prefix : {"torch._sym_", "torch.sym_"})
    if (name.starts_with(prefix)) {
      const std::string rest(name.substr(prefix.size()));
      const auto* own = named("torch.sym_" + rest);
      return own ? own : named("math." + rest);
    }
  return named(name);
}

}  // namespace retrograd
