#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace retrograd
