#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/derivation/sizes.h"

namespace retrograd {

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
