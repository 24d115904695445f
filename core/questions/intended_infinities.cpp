#include "core/questions/intended_infinities.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace retrograd {
namespace {

/// Ops that make no infinity of finite numbers, or none to speak of, by their names without namespace, overload and the
/// underscore of a write. Views pass too.
constexpr auto passing = std::to_array<std::string_view>({
    "_to_copy",
    "add",
    "amax",
    "amin",
    "cat",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clone",
    "concat",
    "constant_pad_nd",
    "contiguous",
    "copy",
    "cummax",
    "cummin",
    "diagonal_scatter",
    "fill",
    "flip",
    "fmax",
    "fmin",
    "full_like",
    "gather",
    "index",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "lift_fresh_copy",
    "log_softmax",
    "_log_softmax",
    "logaddexp",
    "logcumsumexp",
    "logsumexp",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "max",
    "maximum",
    "min",
    "minimum",
    "neg",
    "pad",
    "repeat",
    "repeat_interleave",
    "reshape",
    "roll",
    "scatter",
    "select_scatter",
    "slice_scatter",
    "sort",
    "stack",
    "sub",
    "take",
    "take_along_dim",
    "to",
    "topk",
    "tril",
    "triu",
    "where",
});

bool passes(std::string_view name) {
  if (const auto first = name.find('.'); first != std::string_view::npos) name.remove_prefix(first + 1);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  return std::find(passing.begin(), passing.end(), name) != passing.end();
}

bool isInfinite(const Argument& argument) {
  if (argument.kind == Argument::Kind::real) return std::isinf(argument.real);
  return argument.kind == Argument::Kind::list && std::any_of(argument.items.begin(), argument.items.end(), isInfinite);
}

bool bringsInfinities(ValueKind kind) {
  return kind == ValueKind::input || kind == ValueKind::buffer || kind == ValueKind::constant;
}

}  // namespace

IntendedInfinities::IntendedInfinities(const Analysis& analysis) {
  const auto& document = *analysis.document;
  values_.assign(document.valueCount(), Meant::no);
  for (auto input : analysis.joint.inputs)
    if (input && bringsInfinities(document.value(input).kind)) values_[input] = Meant::asMask;
  // A symbol or a pattern is looked at once, however many ops share it.
  enum : std::uint8_t { unknown, no, yes };
  IdVector<SymbolId, std::uint8_t> symbols;
  IdVector<PatternId, std::uint8_t> patterns;
  symbols.assign(document.symbolCount(), unknown);
  patterns.assign(document.patternCount(), unknown);
  for (auto op : analysis.joint.ops) {
    const auto& bound = document.boundSymbol(op);
    auto& infinite = patterns[bound.pattern];
    if (infinite == unknown) {
      const auto& arguments = document.pattern(bound.pattern).arguments;
      infinite = std::any_of(arguments.begin(), arguments.end(), isInfinite) ? yes : no;
    }
    auto& pass = symbols[bound.symbol];
    if (pass == unknown) pass = passes(document.symbol(bound.symbol).name) ? yes : no;
    const auto operands = document.operands(op);
    const bool holds =
        infinite == yes ||
        ((pass == yes || bound.effects & effect::view) && std::any_of(operands.begin(), operands.end(), [&](ValueId v) {
           return mayHold(v) && document.isTensor(v) && isFloating(document.meta(document.value(v).meta).dtype);
         }));
    if (!holds) continue;
    for (auto output : document.outputs(op))
      if (output) values_[output] = Meant::yes;
  }
}

bool IntendedInfinities::isFault(ValueId value, const TensorStatistics& statistics) const {
  if (statistics.nan > 0) return true;
  if (statistics.inf == 0) return false;
  if (!mayHold(value)) return true;
  return values_[value] == Meant::asMask && statistics.max > 0;
}

bool leavesUninitialised(const Document& document, BoundSymbolId op) {
  const std::string_view name = document.symbol(document.boundSymbol(op).symbol).name;
  return name.starts_with("aten.empty") || name.starts_with("aten.new_empty");
}

}  // namespace retrograd
