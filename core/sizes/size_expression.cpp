#include "core/sizes/size_expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/sizes/number.h"

namespace retrograd {
namespace {

constexpr int deepest = 64;
constexpr std::size_t mostOperands = 16;

Number ceilDivide(NumberOperands v) {
  const auto* negate = findNumberFunction("_operator.neg");
  const auto* divide = findNumberFunction("_operator.floordiv");
  const std::array down{divide->evaluate(std::array{negate->evaluate(v.first(1)), v[1]})};
  return negate->evaluate(down);
}
Number modularIndex(NumberOperands v) {
  const auto quotient = findNumberFunction("_operator.floordiv")->evaluate(v.first(2));
  return findNumberFunction("_operator.mod")->evaluate(std::array{quotient, v[2]});
}
Number truncateReal(NumberOperands v) { return Number::ofReal(std::trunc(v[0].asReal())); }
Number same(NumberOperands v) { return v[0]; }
// Of conditions: Python's `and` and `or`, which are not the bits' & and |.
Number bothTrue(NumberOperands v) { return Number::ofBool(v[0].truth() && v[1].truth()); }
Number anyTrue(NumberOperands v) { return Number::ofBool(v[0].truth() || v[1].truth()); }

/// A sign, or sympy's or torch's name of a function. A chain: f(a, b, c) is f(f(a, b), c).
struct Function {
  std::string_view name;
  std::size_t least, most;
  Number (*evaluate)(NumberOperands);
  bool chain = false;
};

/// Signs and sympy's names of Python's functions (core/sizes/number.h).
constexpr std::pair<std::string_view, std::string_view> pythonNames[] = {
    {"+", "_operator.add"},
    {"-", "_operator.sub"},
    {"*", "_operator.mul"},
    {"//", "_operator.floordiv"},
    {"/", "_operator.truediv"},
    {"%", "_operator.mod"},
    {"**", "_operator.pow"},
    {"neg", "_operator.neg"},
    {"==", "_operator.eq"},
    {"!=", "_operator.ne"},
    {"<=", "_operator.le"},
    {">=", "_operator.ge"},
    {"<", "_operator.lt"},
    {">", "_operator.gt"},
    {"not", "_operator.not_"},
    {"Not", "_operator.not_"},
    {"Eq", "_operator.eq"},
    {"Ne", "_operator.ne"},
    {"Le", "_operator.le"},
    {"Ge", "_operator.ge"},
    {"Lt", "_operator.lt"},
    {"Gt", "_operator.gt"},
    {"Equality", "_operator.eq"},
    {"Unequality", "_operator.ne"},
    {"LessThan", "_operator.le"},
    {"GreaterThan", "_operator.ge"},
    {"StrictLessThan", "_operator.lt"},
    {"StrictGreaterThan", "_operator.gt"},
    {"Abs", "builtins.abs"},
    {"abs", "builtins.abs"},
    {"FloorDiv", "_operator.floordiv"},
    {"CleanDiv", "_operator.floordiv"},
    {"Mod", "_operator.mod"},
    {"PythonMod", "_operator.mod"},
    {"PowByNatural", "_operator.pow"},
    {"FloatPow", "_operator.pow"},
    {"IntTrueDiv", "_operator.truediv"},
    {"FloatTrueDiv", "_operator.truediv"},
    {"TrueDiv", "_operator.truediv"},
    {"Pow", "_operator.pow"},
    {"LShift", "_operator.lshift"},
    {"RShift", "_operator.rshift"},
    {"BitwiseFn_bitwise_and", "_operator.and_"},
    {"BitwiseFn_bitwise_or", "_operator.or_"},
    {"BitwiseFn_bitwise_xor", "_operator.xor"},
    {"ToFloat", "torch.sym_float"},
    {"float", "torch.sym_float"},
    {"TruncToInt", "math.trunc"},
    {"int", "math.trunc"},
    {"floor", "math.floor"},
    {"FloorToInt", "math.floor"},
    {"ceiling", "math.ceil"},
    {"CeilToInt", "math.ceil"},
    {"RoundToInt", "builtins.round"},
    {"RoundDecimal", "builtins.round"},
    {"round", "builtins.round"},
    {"sqrt", "math.sqrt"},
    {"Where", "torch.sym_ite"},
};
constexpr std::pair<std::string_view, std::string_view> chainNames[] = {
    {"Max", "torch.sym_max"}, {"max", "torch.sym_max"}, {"torch.sym_max", "torch.sym_max"},
    {"Min", "torch.sym_min"}, {"min", "torch.sym_min"}, {"torch.sym_min", "torch.sym_min"},
};
/// Names that reach Python's functions of the same name.
constexpr std::string_view ownNames[] = {
    "torch.sym_float", "torch.sym_int", "torch.sym_ite", "torch.sym_sum", "math.trunc", "math.floor", "math.ceil",
    "math.sqrt",       "math.cos",      "math.cosh",     "math.sin",      "math.sinh",  "math.tan",   "math.tanh",
    "math.asin",       "math.acos",     "math.atan",     "math.exp",      "math.log",   "math.log2",
};

std::vector<Function> makeFunctions() {
  std::vector<Function> functions{
      {"CeilDiv", 2, 2, ceilDivide},        {"ModularIndexing", 3, 3, modularIndex},
      {"TruncToFloat", 1, 1, truncateReal}, {"Identity", 1, 1, same},
      {"and", 2, 2, bothTrue, true},        {"And", 2, 2, bothTrue, true},
      {"or", 2, 2, anyTrue, true},          {"Or", 2, 2, anyTrue, true},
  };
  const auto add = [&](std::string_view name, std::string_view python, bool chain) {
    const auto* function = findNumberFunction(python);
    functions.push_back({name, function->least, function->most, function->evaluate, chain});
  };
  for (const auto& [name, python] : pythonNames) add(name, python, false);
  for (const auto& [name, python] : chainNames) add(name, python, true);
  for (const auto name : ownNames) add(name, name, false);
  return functions;
}

const std::vector<Function>& functions() {
  static const auto table = makeFunctions();
  return table;
}

std::int64_t functionNamed(std::string_view name) {
  constexpr std::string_view opaque = "OpaqueUnaryFn_";  // torch's name in front of math's
  const std::string wanted =
      name.starts_with(opaque) ? "math." + std::string(name.substr(opaque.size())) : std::string(name);
  const auto it =
      std::find_if(functions().begin(), functions().end(), [&](const Function& f) { return f.name == wanted; });
  return it == functions().end() ? -1 : it - functions().begin();
}

/// nullopt where Python raises or an integer does not fit.
std::optional<Number> apply(const Function& function, NumberOperands operands) {
  try {
    if (!function.chain) return function.evaluate(operands);
    Number result = operands[0];
    for (const auto& operand : operands.subspan(1)) result = function.evaluate(std::array{result, operand});
    return result;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool startsName(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool inName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

}  // namespace

/// Recursive descent, one function a level of precedence; each leaves its program behind that of its operands.
class SizeParser {
 public:
  explicit SizeParser(std::string_view text) : text_(text) {}

  /// Runs the program that a parser left.
  static std::optional<Number> evaluate(const SizeExpression& expression, const SizeBindings& bindings);

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
    const auto& entry = functions()[function];
    const bool fits = entry.chain ? operands > 0 : operands >= entry.least && operands <= entry.most;
    if (!fits || operands > mostOperands) return false;
    expression_.steps_.push_back({Kind::function, static_cast<std::uint8_t>(operands), function, 0});
    return true;
  }

  bool takeOperator(std::string_view text) {
    if (startsName(text.front())) return takeWord(text);
    return !(text == "*" && isPower()) && take(text);
  }
  /// Operands with operators of one rank between them, from left to right.
  bool leftToRight(bool (SizeParser::*operand)(), std::initializer_list<std::string_view> operators) {
    if (!(this->*operand)()) return false;
    for (;;) {
      const auto* found =
          std::find_if(operators.begin(), operators.end(), [&](auto each) { return takeOperator(each); });
      if (found == operators.end()) return true;
      if (!(this->*operand)() || !call(*found, 2)) return false;
    }
  }

  bool disjunction() { return leftToRight(&SizeParser::conjunction, {"or"}); }
  bool conjunction() { return leftToRight(&SizeParser::negation, {"and"}); }
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
  bool sum() { return leftToRight(&SizeParser::product, {"+", "-"}); }
  bool product() { return leftToRight(&SizeParser::signedFactor, {"//", "/", "%", "*"}); }
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
    at_ += real.ptr - begin;
    expression_.steps_.push_back(step);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  SizeExpression expression_;
};

std::optional<SizeExpression> SizeExpression::parse(std::string_view text) { return SizeParser(text).run(); }

std::optional<Number> SizeParser::evaluate(const SizeExpression& expression, const SizeBindings& bindings) {
  std::vector<Number> stack;
  for (const auto& step : expression.steps_) {
    if (step.kind == Kind::integer) {
      stack.push_back(Number::ofInt(step.integer));
    } else if (step.kind == Kind::real) {
      stack.push_back(Number::ofReal(step.real));
    } else if (step.kind == Kind::symbol) {
      const auto it = bindings.find(expression.symbols_[step.integer]);
      if (it == bindings.end()) return std::nullopt;
      stack.push_back(Number::ofInt(it->second));
    } else {
      const auto begin = stack.size() - step.operands;
      const auto result = apply(functions()[step.integer], NumberOperands(stack).subspan(begin));
      if (!result) return std::nullopt;
      stack.resize(begin);
      stack.push_back(*result);
    }
  }
  return stack.back();
}

std::optional<Number> evaluateNumber(const SizeExpression& expression, const SizeBindings& bindings) {
  return SizeParser::evaluate(expression, bindings);
}

std::optional<std::int64_t> SizeExpression::evaluate(const SizeBindings& bindings) const {
  const auto value = SizeParser::evaluate(*this, bindings);
  if (!value || !value->isReal()) return value ? std::optional(value->integer) : std::nullopt;
  constexpr double beyond = 9223372036854775808.0;  // 2^63
  const bool whole = std::trunc(value->real) == value->real && value->real >= -beyond && value->real < beyond;
  return whole ? std::optional(static_cast<std::int64_t>(value->real)) : std::nullopt;
}

std::optional<std::int64_t> SizeExpression::solve(std::string_view symbol, std::int64_t value,
                                                  SizeBindings bindings) const {
  auto& unknown = bindings[std::string(symbol)];
  // At two values that no floor division is likely to swallow; what follows from them is tried out.
  constexpr std::int64_t low = 1024, high = 2048;
  unknown = low;
  const auto atLow = evaluate(bindings);
  unknown = high;
  const auto atHigh = evaluate(bindings);
  constexpr std::int64_t largest = std::int64_t{1} << 60;  // beyond it the differences below might not fit
  const auto fits = [](std::optional<std::int64_t> n) { return n && *n > -largest && *n < largest; };
  if (!fits(atLow) || !fits(atHigh) || !fits(value) || *atLow == *atHigh || (*atHigh - *atLow) % (high - low) != 0)
    return std::nullopt;
  const auto slope = (*atHigh - *atLow) / (high - low), rest = value - (*atLow - slope * low);
  if (rest % slope != 0) return std::nullopt;
  unknown = rest / slope;
  return evaluate(bindings) == value ? std::optional(unknown) : std::nullopt;
}

bool SizeExpression::isCondition() const {
  static constexpr std::array<std::string_view, 13> conditions{"==", "!=",  "<=",  ">=", "<",   ">", "and",
                                                               "or", "not", "And", "Or", "Not", "Eq"};
  return steps_.back().kind == Kind::function &&
         std::find(conditions.begin(), conditions.end(), functions()[steps_.back().integer].name) != conditions.end();
}

std::optional<std::int64_t> evaluateSize(std::string_view text, const SizeBindings& bindings) {
  const auto expression = SizeExpression::parse(text);
  return expression ? expression->evaluate(bindings) : std::nullopt;
}

}  // namespace retrograd
