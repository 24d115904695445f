#include "core/derivation/size_points.h"

#include <algorithm>

namespace retrograd {
namespace {

constexpr int strictTries = 256, tries = 1024;
constexpr std::size_t mostTold = 32;  // symbols; among more of them some are alike
constexpr std::int64_t largest = std::int64_t{1} << 40;
constexpr std::int64_t smallest = 2;  // 0 and 1 are sizes of their own kind to LibTorch: they broadcast and vanish

}  // namespace

SizePoints::SizePoints(const ModelFile& file)
    : symbols_(file.document->sizeSymbols()),
      conditions_(sizeConditions(file)),
      hints_(file.document->sizeHints()),
      seen_{hints_} {
  const auto& document = *file.document;
  for (auto& branch : branchConditions(document)) conditions_.push_back(std::move(branch.condition));
  const auto add = [&](std::string_view text) {
    auto expression = SizeExpression::parse(text);
    if (text.empty() || !expression) return;
    for (const auto& name : expression->symbols())
      if (hints_.contains(name) && std::find(names_.begin(), names_.end(), name) == names_.end())
        names_.push_back(name);
    inputSizes_.push_back(*std::move(expression));
  };
  for (const auto& input : file.computation.inputs) {
    if (input.kind != InputKind::user || !input.value) continue;
    const auto meta = document.value(input.value).meta;
    if (!meta) add(document.sizeExpression(input.value));
    else
      for (const auto& symbol : document.meta(meta).symbols) add(symbol);
  }
}

/// splitmix64: a generator of our own, as points must not depend on the standard library's.
std::int64_t SizePoints::draw(const SizeSymbol& symbol, std::int64_t window) {
  state_ += 0x9e3779b97f4a7c15;
  auto bits = state_;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  bits ^= bits >> 31;
  const auto hint = std::min(symbol.hint, largest);
  if (multiples_) return hint * static_cast<std::int64_t>(2 + bits % 15);
  const auto least = std::max(symbol.least, std::min(smallest, symbol.greatest.value_or(smallest)));
  const auto greatest = std::min(symbol.greatest.value_or(hint + window), std::max(hint, least) + window);
  return greatest <= least ? least
                           : least + static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(greatest - least + 1));
}

bool SizePoints::isNew(const SizeBindings& point, bool strictly) const {
  strictly &= names_.size() <= mostTold;
  for (const auto& earlier : seen_) {
    if (earlier == point) return false;
    for (const auto& name : names_)
      if (strictly && earlier.find(name)->second == point.find(name)->second) return false;
  }
  for (std::size_t i = 0; strictly && i < names_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (point.find(names_[i])->second == point.find(names_[j])->second) return false;
  return true;
}

bool SizePoints::isAllowed(const SizeBindings& point) const {
  for (const auto& symbol : symbols_) {
    const auto value = point.find(symbol.name)->second;
    if (value < symbol.least || (symbol.greatest && value > *symbol.greatest)) return false;
  }
  const auto isSize = [&](const SizeExpression& size) { return size.evaluate(point).value_or(0) >= 1; };
  const auto holds = [&](const SizeCondition& condition) { return condition.holds.evaluate(point).value_or(0) != 0; };
  return std::all_of(inputSizes_.begin(), inputSizes_.end(), isSize) &&
         std::all_of(conditions_.begin(), conditions_.end(), holds);
}

std::optional<SizeBindings> SizePoints::next() {
  for (int i = 0; i < tries; ++i) {
    SizeBindings point = hints_;
    const std::int64_t window = 16 << (i * 6 / tries);  // near the hints first: ops without a shape rule run for real
    for (const auto& symbol : symbols_)
      if (std::find(names_.begin(), names_.end(), symbol.name) != names_.end())
        point[symbol.name] = draw(symbol, window);
    if (!isNew(point, i < strictTries) || !isAllowed(point)) continue;
    seen_.push_back(point);
    return point;
  }
  return std::nullopt;
}

}  // namespace retrograd
