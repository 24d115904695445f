#include "core/stepping/bad_places.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "core/derivation/result_names.h"
#include "core/statistics/element.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

template <class Element>
void look(const TensorData& tensor, std::size_t most, std::vector<BadPlace>& found) {
  using Bits = typename Element::Bits;
  const auto& meta = tensor.meta;
  const auto elements = meta.elements();
  std::vector<std::int64_t> index(meta.sizes.size(), 0);
  for (std::int64_t n = 0; n < elements && found.size() < most; ++n) {
    auto at = meta.offset;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * meta.strides[d];
    Bits bits;
    std::memcpy(&bits, tensor.data + at * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    const auto number = Element::number(bits);
    if (!std::isfinite(static_cast<double>(number)))
      found.push_back({index, std::isnan(static_cast<double>(number)) ? "nan" : number > 0 ? "inf" : "-inf"});
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] != meta.sizes[d]) break;
      index[d] = 0;
    }
  }
}

std::string indexText(const std::vector<std::int64_t>& index) {
  std::string text = "[";
  for (std::size_t d = 0; d < index.size(); ++d) text += (d ? ", " : "") + std::to_string(index[d]);
  return text + "]";
}

}  // namespace

std::vector<BadPlace> badPlaces(const TensorData& tensor, std::size_t most) {
  std::vector<BadPlace> found;
  if (!tensor.data || !isDifferentiable(tensor.meta.dtype)) return found;
  numbers::withElement(tensor.meta.dtype, [&](auto element) { look<decltype(element)>(tensor, most, found); });
  return found;
}

std::string describe(const std::vector<BadPlace>& places, std::size_t all) {
  std::map<std::string, std::string, std::greater<>> byNumber;  // nan, inf, -inf
  for (const auto& place : places) {
    auto& list = byNumber[place.number];
    list += (list.empty() ? "" : ", ") + indexText(place.index);
  }
  std::string text;
  for (const auto& [number, list] : byNumber) text += fmt::format("{}{} at {}", text.empty() ? "" : "; ", number, list);
  return all > places.size() && !places.empty() ? text + ", ..." : text;
}

namespace {

std::string kindAndName(const Analysis& analysis, const InputSpec& input) {
  if (input.kind == InputKind::parameter) return "the parameter " + input.target;
  if (input.kind == InputKind::buffer) return "the buffer " + input.target;
  return "the input " + (input.name.empty() ? analysis.document->displayName(input.value) : input.name);
}

Claim rootClaim(const Analysis& analysis, BoundSymbolId op, ValueId value, const TensorStatistics& statistics,
                const std::string& explanation) {
  const auto& document = *analysis.document;
  const auto* what = statistics.nan ? "NaN" : "Inf";
  Claim claim{.by = Producer::health, .kind = "not-finite-root", .op = op, .value = value};
  if (op)
    claim.sentence =
        fmt::format("{} is first made by {}: {}", what, placeOfOp(document, op, value), badCounts(statistics));
  else claim.sentence = fmt::format("{} comes in with {}", what, badInputText(analysis, value, statistics));
  if (!explanation.empty()) claim.sentence += "; " + explanation;
  claim.line = pythonLine(document, op);
  if (op) claim.command = "source";
  return claim;
}

}  // namespace

std::string badInputText(const Analysis& analysis, ValueId value, const TensorStatistics& statistics) {
  constexpr std::size_t shown = 3;
  const auto& inputs = analysis.computation().inputs;
  auto text = "the input " + analysis.document->displayName(value);
  std::string places;
  const auto bad = static_cast<std::size_t>(statistics.nan + statistics.inf);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].value != value) continue;
    text = kindAndName(analysis, inputs[i]);
    if (const auto* data = inputData(analysis, i)) places = describe(badPlaces(*data, shown), bad);
  }
  if (!places.empty()) text += ", " + places;
  text += fmt::format(" ({} of {} elements)", bad, statistics.elements);
  if (analysis.document->value(value).kind == ValueKind::cotangent)
    text += ", a gradient that an output got from outside: what made it is not in this file";
  return text;
}

std::string badCounts(const TensorStatistics& statistics) {
  std::string text;
  if (statistics.nan) text += fmt::format("{} NaN", statistics.nan);
  if (statistics.inf) text += fmt::format("{}{} Inf", text.empty() ? "" : ", ", statistics.inf);
  return fmt::format("{} of {} elements", text, statistics.elements);
}

std::vector<Claim> claimsOf(const Analysis& analysis, const NanWalk& walk) {
  std::vector<Claim> claims;
  if (walk.path.empty()) return claims;
  const auto& last = walk.path.back();
  claims.push_back(rootClaim(analysis, walk.root, last.value, last.statistics, walk.explanation));
  for (const auto& root : walk.otherRoots)
    claims.push_back(rootClaim(analysis, root.op, root.value, root.statistics, root.explanation));
  return claims;
}

}  // namespace retrograd
