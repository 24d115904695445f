#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

/// What the size symbols of a file stand for, by name.
using SizeBindings = std::map<std::string, std::int64_t, std::less<>>;

/// An expression over size symbols in the infix notation of printed traces and of the conditions torch.export leaves in
/// a file: "2*s0", "(s0 + 1)//2", "Max(1, s0 - 3)", "s0 % 4 == 0". Python's operators and precedence, sympy's and
/// torch's functions on sizes.
class SizeExpression {
 public:
  /// nullopt where the text is not such an expression.
  static std::optional<SizeExpression> parse(std::string_view text);

  /// The integer it comes to (0 or 1 for a comparison), with Python's floor division and modulo. nullopt where a symbol
  /// is not bound, a divisor is zero, the result is not an integer or does not fit.
  std::optional<std::int64_t> evaluate(const SizeBindings& bindings) const;

  /// What `symbol` has to be for the expression to come to `value`, the other symbols bound; nullopt where it is not
  /// linear in it, or no integer does.
  std::optional<std::int64_t> solve(std::string_view symbol, std::int64_t value, SizeBindings bindings) const;

  /// A comparison or a combination of comparisons: it comes to 0 or 1.
  bool isCondition() const;

  /// Names of its symbols, each once, in order of appearance.
  const std::vector<std::string>& symbols() const { return symbols_; }

 private:
  friend class SizeParser;
  enum class Kind : std::uint8_t { integer, real, symbol, function };
  /// One step of the postfix program.
  struct Step {
    Kind kind = Kind::integer;
    std::uint8_t operands = 0;  ///< function: how many it takes off the stack
    std::int64_t integer = 0;   ///< integer: its value; symbol: index into symbols_; function: its number
    double real = 0;
  };
  std::vector<Step> steps_;
  std::vector<std::string> symbols_;
};

/// What the expression in `text` comes to; nullopt where it cannot be parsed or evaluated.
std::optional<std::int64_t> evaluateSize(std::string_view text, const SizeBindings& bindings);

}  // namespace retrograd
