#include "core/trace/size_expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace retrograd {
namespace {

constexpr int deepest = 64;
constexpr std::size_t mostOperands = 16;

/// An integer or, in the middle of an expression such as TruncToInt(0.5*s0), a real.
struct Number {
  bool isReal = false;
  std::int64_t integer = 0;
  double real = 0;

  static Number ofInt(std::int64_t i) { return {false, i, 0}; }
  static Number ofReal(double d) { return {true, 0, d}; }
  double asReal() const { return isReal ? real : static_cast<double>(integer); }
};
using Result = std::optional<Number>;
using Operands = const Number*;

Result toInteger(double d) {
  constexpr double limit = 9.2e18;
  if (!(std::abs(d) < limit)) return std::nullopt;
  return Number::ofInt(static_cast<std::int64_t>(d));
}

bool integral(Operands v) { return !v[0].isReal && !v[1].isReal; }

Result add(Operands v) {
  std::int64_t sum = 0;
  if (!integral(v)) return Number::ofReal(v[0].asReal() + v[1].asReal());
  return __builtin_add_overflow(v[0].integer, v[1].integer, &sum) ? Result() : Number::ofInt(sum);
}
Result subtract(Operands v) {
  std::int64_t difference = 0;
  if (!integral(v)) return Number::ofReal(v[0].asReal() - v[1].asReal());
  return __builtin_sub_overflow(v[0].integer, v[1].integer, &difference) ? Result() : Number::ofInt(difference);
}
Result multiply(Operands v) {
  std::int64_t product = 0;
  if (!integral(v)) return Number::ofReal(v[0].asReal() * v[1].asReal());
  return __builtin_mul_overflow(v[0].integer, v[1].integer, &product) ? Result() : Number::ofInt(product);
}
Result negate(Operands v) {
  const std::array<Number, 2> difference{Number::ofInt(0), v[0]};
  return subtract(difference.data());
}
Result floorDivide(Operands v) {
  if (v[1].asReal() == 0) return std::nullopt;
  if (!integral(v)) return toInteger(std::floor(v[0].asReal() / v[1].asReal()));
  const auto a = v[0].integer, b = v[1].integer;
  if (b == -1) return negate(v);  // the one quotient that may not fit
  return Number::ofInt(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
}
Result ceilDivide(Operands v) {
  const auto negated = negate(v);
  if (!negated) return std::nullopt;
  const std::array<Number, 2> operands{*negated, v[1]};
  const auto quotient = floorDivide(operands.data());
  return quotient ? negate(&*quotient) : std::nullopt;
}
Result divide(Operands v) {
  if (v[1].asReal() == 0) return std::nullopt;
  return Number::ofReal(v[0].asReal() / v[1].asReal());
}
Result modulo(Operands v) {
  const auto quotient = floorDivide(v);
  if (!quotient) return std::nullopt;
  const std::array<Number, 2> product{*quotient, v[1]};
  const auto whole = multiply(product.data());
  if (!whole) return std::nullopt;
  const std::array<Number, 2> difference{v[0], *whole};
  return subtract(difference.data());
}
Result power(Operands v) {
  if (!integral(v) || v[1].integer < 0) return Number::ofReal(std::pow(v[0].asReal(), v[1].asReal()));
  constexpr std::int64_t highest = 64;
  if (v[1].integer > highest) return std::nullopt;
  Number result = Number::ofInt(1);
  for (std::int64_t i = 0; i < v[1].integer; ++i) {
    const std::array<Number, 2> factors{result, v[0]};
    const auto next = multiply(factors.data());
    if (!next) return std::nullopt;
    result = *next;
  }
  return result;
}
Result larger(Operands v) { return v[0].asReal() >= v[1].asReal() ? v[0] : v[1]; }
Result smaller(Operands v) { return v[0].asReal() <= v[1].asReal() ? v[0] : v[1]; }
Result same(Operands v) { return v[0]; }
Result asReal(Operands v) { return Number::ofReal(v[0].asReal()); }
Result absolute(Operands v) { return v[0].asReal() < 0 ? negate(v) : v[0]; }
Result choose(Operands v) { return v[0].asReal() != 0 ? v[1] : v[2]; }
template <double (*round)(double)>
Result rounded(Operands v) {
  return v[0].isReal ? toInteger(round(v[0].real)) : v[0];
}
template <class Compare>
Result compared(Operands v) {
  return Number::ofInt(integral(v) ? Compare()(v[0].integer, v[1].integer) : Compare()(v[0].asReal(), v[1].asReal()));
}
Result bothTrue(Operands v) { return Number::ofInt(v[0].asReal() != 0 && v[1].asReal() != 0); }
Result anyTrue(Operands v) { return Number::ofInt(v[0].asReal() != 0 || v[1].asReal() != 0); }
Result notTrue(Operands v) { return Number::ofInt(v[0].asReal() == 0); }

double floorOf(double d) { return std::floor(d); }
double ceilOf(double d) { return std::ceil(d); }
double truncOf(double d) { return std::trunc(d); }
double nearestOf(double d) { return std::nearbyint(d); }

/// Operators first, by their sign; then functions by sympy's and torch's names. A chain: f(a, b, c) is f(f(a, b), c).
struct Function {
  std::string_view name;
  std::size_t operands;
  Result (*evaluate)(Operands);
  bool chain = false;
};
constexpr auto functions = std::to_array<Function>({
    {"+", 2, add},
    {"-", 2, subtract},
    {"*", 2, multiply},
    {"//", 2, floorDivide},
    {"/", 2, divide},
    {"%", 2, modulo},
    {"**", 2, power},
    {"neg", 1, negate},
    {"==", 2, compared<std::equal_to<>>},
    {"!=", 2, compared<std::not_equal_to<>>},
    {"<=", 2, compared<std::less_equal<>>},
    {">=", 2, compared<std::greater_equal<>>},
    {"<", 2, compared<std::less<>>},
    {">", 2, compared<std::greater<>>},
    {"and", 2, bothTrue, true},
    {"or", 2, anyTrue, true},
    {"not", 1, notTrue},
    {"And", 2, bothTrue, true},
    {"Or", 2, anyTrue, true},
    {"Not", 1, notTrue},
    {"Eq", 2, compared<std::equal_to<>>},
    {"Ne", 2, compared<std::not_equal_to<>>},
    {"Le", 2, compared<std::less_equal<>>},
    {"Ge", 2, compared<std::greater_equal<>>},
    {"Lt", 2, compared<std::less<>>},
    {"Gt", 2, compared<std::greater<>>},
    {"Equality", 2, compared<std::equal_to<>>},
    {"Unequality", 2, compared<std::not_equal_to<>>},
    {"LessThan", 2, compared<std::less_equal<>>},
    {"GreaterThan", 2, compared<std::greater_equal<>>},
    {"StrictLessThan", 2, compared<std::less<>>},
    {"StrictGreaterThan", 2, compared<std::greater<>>},
    {"Max", 2, larger, true},
    {"Min", 2, smaller, true},
    {"max", 2, larger, true},
    {"min", 2, smaller, true},
    {"torch.sym_max", 2, larger, true},
    {"torch.sym_min", 2, smaller, true},
    {"Abs", 1, absolute},
    {"abs", 1, absolute},
    {"FloorDiv", 2, floorDivide},
    {"CleanDiv", 2, floorDivide},
    {"CeilDiv", 2, ceilDivide},
    {"Mod", 2, modulo},
    {"PythonMod", 2, modulo},
    {"PowByNatural", 2, power},
    {"FloatPow", 2, power},
    {"IntTrueDiv", 2, divide},
    {"FloatTrueDiv", 2, divide},
    {"Identity", 1, same},
    {"ToFloat", 1, asReal},
    {"torch.sym_float", 1, asReal},
    {"float", 1, asReal},
    {"TruncToInt", 1, rounded<truncOf>},
    {"TruncToFloat", 1, rounded<truncOf>},
    {"torch.sym_int", 1, rounded<truncOf>},
    {"int", 1, rounded<truncOf>},
    {"math.trunc", 1, rounded<truncOf>},
    {"floor", 1, rounded<floorOf>},
    {"FloorToInt", 1, rounded<floorOf>},
    {"math.floor", 1, rounded<floorOf>},
    {"ceiling", 1, rounded<ceilOf>},
    {"CeilToInt", 1, rounded<ceilOf>},
    {"math.ceil", 1, rounded<ceilOf>},
    {"RoundToInt", 1, rounded<nearestOf>},
    {"round", 1, rounded<nearestOf>},
    {"Where", 3, choose},
    {"torch.sym_ite", 3, choose},
});

std::int64_t functionNamed(std::string_view name) {
  const auto it = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  return it == functions.end() ? -1 : it - functions.begin();
}

bool startsName(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool inName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

}  // namespace

/// Recursive descent, one function a level of precedence; each leaves its program behind that of its operands.
class SizeParser {
 public:
  explicit SizeParser(std::string_view text) : text_(text) {}

  std::optional<SizeExpression> run() {
    if (!disjunction()) return std::nullopt;
    skipSpace();
    return at_ == text_.size() ? std::optional(std::move(expression_)) : std::nullopt;
  }

 private:
  using Kind = SizeExpression::Kind;

  void skipSpace() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view sign) {
    skipSpace();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  bool takeWord(std::string_view word) {
    skipSpace();
    const auto end = at_ + word.size();
    if (!text_.substr(at_).starts_with(word) || (end < text_.size() && inName(text_[end]))) return false;
    at_ = end;
    return true;
  }
  bool call(std::string_view name, std::size_t operands) {
    const auto function = functionNamed(name);
    if (function < 0) return false;
    const auto& entry = functions[static_cast<std::size_t>(function)];
    if (operands != entry.operands && !(entry.chain && operands > 0 && operands <= mostOperands)) return false;
    expression_.steps_.push_back({Kind::function, static_cast<std::uint8_t>(operands), function, 0});
    return true;
  }

  bool disjunction() {
    if (!conjunction()) return false;
    while (takeWord("or"))
      if (!conjunction() || !call("or", 2)) return false;
    return true;
  }
  bool conjunction() {
    if (!negation()) return false;
    while (takeWord("and"))
      if (!negation() || !call("and", 2)) return false;
    return true;
  }
  bool negation() {
    bool negated = false;
    while (takeWord("not")) negated = !negated;
    return comparison() && (!negated || call("not", 1));
  }
  bool comparison() {
    if (!sum()) return false;
    for (std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (take(sign)) return sum() && call(sign, 2);
    return true;
  }
  bool sum() {
    if (!product()) return false;
    for (;;) {
      if (take("+")) {
        if (!product() || !call("+", 2)) return false;
      } else if (take("-")) {
        if (!product() || !call("-", 2)) return false;
      } else {
        return true;
      }
    }
  }
  bool product() {
    if (!signedFactor()) return false;
    for (;;) {
      if (take("//")) {
        if (!signedFactor() || !call("//", 2)) return false;
      } else if (take("/")) {
        if (!signedFactor() || !call("/", 2)) return false;
      } else if (take("%")) {
        if (!signedFactor() || !call("%", 2)) return false;
      } else if (!isPower() && take("*")) {
        if (!signedFactor() || !call("*", 2)) return false;
      } else {
        return true;
      }
    }
  }
  bool isPower() {
    skipSpace();
    return text_.substr(at_).starts_with("**");
  }
  bool signedFactor() {
    if (++depth_ > deepest) return false;
    const bool negative = take("-");
    const bool good = (negative ? signedFactor() && call("neg", 1) : power());
    --depth_;
    return good;
  }
  bool power() {
    if (!atom()) return false;
    return !take("**") || (signedFactor() && call("**", 2));
  }
  bool atom() {
    skipSpace();
    if (at_ >= text_.size()) return false;
    if (take("(")) {
      if (++depth_ > deepest) return false;
      const bool good = disjunction() && take(")");
      --depth_;
      return good;
    }
    return startsName(text_[at_]) ? name() : number();
  }
  bool name() {
    const auto begin = at_;
    while (at_ < text_.size() && inName(text_[at_])) ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    if (!take("(")) return symbol(word);
    std::size_t operands = 0;
    if (++depth_ > deepest) return false;
    do {
      if (!disjunction()) return false;
      ++operands;
    } while (take(","));
    --depth_;
    return take(")") && call(word, operands);
  }
  bool symbol(std::string_view word) {
    if (word == "True" || word == "False") {
      expression_.steps_.push_back({Kind::integer, 0, word == "True", 0});
      return true;
    }
    if (word.find('.') != std::string_view::npos) return false;
    auto& symbols = expression_.symbols_;
    auto it = std::find(symbols.begin(), symbols.end(), word);
    if (it == symbols.end()) it = symbols.emplace(symbols.end(), word);
    expression_.steps_.push_back({Kind::symbol, 0, it - symbols.begin(), 0});
    return true;
  }
  bool number() {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    SizeExpression::Step step;
    const auto integer = std::from_chars(begin, end, step.integer);
    const auto real = std::from_chars(begin, end, step.real);
    if (real.ec != std::errc()) return false;
    if (integer.ec != std::errc() || real.ptr != integer.ptr) step.kind = Kind::real;
    at_ += static_cast<std::size_t>(real.ptr - begin);
    expression_.steps_.push_back(step);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  SizeExpression expression_;
};

std::optional<SizeExpression> SizeExpression::parse(std::string_view text) { return SizeParser(text).run(); }

std::optional<std::int64_t> SizeExpression::evaluate(const SizeBindings& bindings) const {
  std::vector<Number> stack;
  for (const auto& step : steps_) {
    if (step.kind == Kind::integer) {
      stack.push_back(Number::ofInt(step.integer));
    } else if (step.kind == Kind::real) {
      stack.push_back(Number::ofReal(step.real));
    } else if (step.kind == Kind::symbol) {
      const auto it = bindings.find(symbols_[static_cast<std::size_t>(step.integer)]);
      if (it == bindings.end()) return std::nullopt;
      stack.push_back(Number::ofInt(it->second));
    } else {
      const auto& function = functions[static_cast<std::size_t>(step.integer)];
      const auto begin = stack.size() - step.operands;
      Result result = stack[begin];
      if (!function.chain) {
        result = function.evaluate(stack.data() + begin);
      } else {
        for (std::size_t i = 1; i < step.operands && result; ++i) {
          const std::array<Number, 2> pair{*result, stack[begin + i]};
          result = function.evaluate(pair.data());
        }
      }
      if (!result) return std::nullopt;
      stack.resize(begin);
      stack.push_back(*result);
    }
  }
  const auto& value = stack.back();
  if (!value.isReal) return value.integer;
  const auto whole = std::trunc(value.real) == value.real ? toInteger(value.real) : std::nullopt;
  return whole ? std::optional(whole->integer) : std::nullopt;
}

std::optional<std::int64_t> SizeExpression::solve(std::string_view symbol, std::int64_t value, SizeBindings bindings) const {
  auto& unknown = bindings[std::string(symbol)];
  // At two values that no floor division is likely to swallow; what follows from them is tried out.
  constexpr std::int64_t low = 1024, high = 2048;
  unknown = low;
  const auto atLow = evaluate(bindings);
  unknown = high;
  const auto atHigh = evaluate(bindings);
  constexpr std::int64_t largest = std::int64_t{1} << 60;  // beyond it the differences below might not fit
  const auto fits = [](std::optional<std::int64_t> n) { return n && *n > -largest && *n < largest; };
  if (!fits(atLow) || !fits(atHigh) || !fits(value) || *atLow == *atHigh || (*atHigh - *atLow) % (high - low) != 0) return std::nullopt;
  const auto slope = (*atHigh - *atLow) / (high - low), rest = value - (*atLow - slope * low);
  if (rest % slope != 0) return std::nullopt;
  unknown = rest / slope;
  return evaluate(bindings) == value ? std::optional(unknown) : std::nullopt;
}

bool SizeExpression::isCondition() const {
  static constexpr std::array<std::string_view, 13> conditions{"==", "!=", "<=", ">=", "<", ">", "and", "or", "not", "And", "Or", "Not", "Eq"};
  return steps_.back().kind == Kind::function &&
         std::find(conditions.begin(), conditions.end(), functions[static_cast<std::size_t>(steps_.back().integer)].name) != conditions.end();
}

std::optional<std::int64_t> evaluateSize(std::string_view text, const SizeBindings& bindings) {
  const auto expression = SizeExpression::parse(text);
  return expression ? expression->evaluate(bindings) : std::nullopt;
}

}  // namespace retrograd
