#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/derivation/sizes.h"
#include "core/sizes/size_expression.h"

namespace retrograd {

/// Finds the expression over size symbols behind numbers that were seen for several values of the symbols: constants,
/// expressions that the file itself has, products of these and, where the points suffice, sums of two products
/// and a constant. An expression holds at every point, and a form with n coefficients is tried only where there are n +
/// 2 points or more: two that had no say in choosing the coefficients.
class SizeFit {
 public:
  /// The values of the symbols at each point; `symbols` in the order in which they are in a product.
  SizeFit(const std::vector<std::string>& symbols, std::vector<SizeBindings> points);

  /// An expression to look for; earlier ones are preferred. One that cannot be evaluated at every point is ignored.
  void know(const std::string& expression);

  /// The expression of what was numbers[i] at point i; empty for a constant; nullopt where none was found.
  std::optional<std::string> expressionOf(const std::vector<std::int64_t>& numbers);
  /// The same for reals that are whole numbers, or a small whole number over an expression ("2/(s0 - 1)"), to the last
  /// bit.
  std::optional<std::string> realExpressionOf(const std::vector<double>& numbers);

 private:
  using Numbers = std::vector<std::int64_t>;
  struct Term {
    Numbers at;  ///< its value at each point
    std::string text;
    bool isAtom = true;  ///< is in a product without parentheses
    int degree = 1;
  };

  void makeProducts();
  std::vector<Term> productsOf(const std::vector<Term>& factors) const;
  std::optional<std::string> search(const Numbers& numbers);
  std::optional<std::string> asMultiple(const Numbers& numbers, std::int64_t largestDivisor) const;
  std::optional<std::string> asLine(const Numbers& numbers) const;
  std::optional<std::string> asPlane(const Numbers& numbers) const;

  std::vector<SizeBindings> points_;
  std::map<Numbers, std::optional<std::string>> known_;
  std::vector<Term> terms_;     ///< what is known, in order
  std::vector<Term> products_;  ///< of up to three known terms, by degree; made when first needed
};

/// Other sizes that a model could be run with, taking the same branches: values of its size symbols within their ranges
/// and conditions, near the hints, no symbol with the same value twice and no two symbols alike where the ranges leave
/// room. The same ones each time.
class SizePoints {
 public:
  explicit SizePoints(const ModelFile& file);

  /// A point that was not there before; nullopt where none is found.
  std::optional<SizeBindings> next();
  /// From here on multiples of the hints: what a graph divides without saying so stays divisible.
  void multiplesOnly() { multiples_ = true; }
  /// The symbols that inputs decide.
  const std::vector<std::string>& symbols() const { return names_; }

 private:
  std::int64_t draw(const SizeSymbol& symbol, std::int64_t window);
  bool isNew(const SizeBindings& point, bool strictly) const;
  bool isAllowed(const SizeBindings& point) const;

  const std::vector<SizeSymbol> symbols_;
  std::vector<SizeCondition> conditions_;
  std::vector<std::string> names_;
  std::vector<SizeExpression> inputSizes_;
  SizeBindings hints_;
  std::vector<SizeBindings> seen_;  // the hints, then the points given out
  std::uint64_t state_ = 0x9e3779b97f4a7c15;
  bool multiples_ = false;
};

}  // namespace retrograd
