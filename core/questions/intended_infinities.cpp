#include "core/questions/intended_infinities.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// Ops that make no infinity of finite numbers, or none to speak of, by their names without namespace, overload and the
/// underscore of a write. Views pass too.
constexpr auto passing = std::to_array<std::string_view>({
    "_to_copy",
    "add",
    "amax",
    "amin",
    "bucketize",
    "cat",
    "ceil",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clone",
    "concat",
    "constant_pad_nd",
    "contiguous",
    "cummax",
    "cummin",
    "cumsum",
    "diagonal_scatter",
    "div",
    "flip",
    "floor",
    "fmax",
    "fmin",
    "full_like",
    "gather",
    "index",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "leaky_relu",
    "lerp",
    "lift_fresh_copy",
    "log_sigmoid",
    "log_sigmoid_forward",
    "log_softmax",
    "_log_softmax",
    "logaddexp",
    "logcumsumexp",
    "logsumexp",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "max",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mul",
    "neg",
    "pad",
    "reflection_pad1d",
    "reflection_pad2d",
    "repeat",
    "repeat_interleave",
    "replication_pad1d",
    "replication_pad2d",
    "reshape",
    "roll",
    "round",
    "rsub",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select_scatter",
    "slice_scatter",
    "sort",
    "stack",
    "sub",
    "sum",
    "take",
    "take_along_dim",
    "to",
    "topk",
    "tril",
    "triu",
    "trunc",
    "unfold",
    "upsample_bilinear2d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "where",
});

/// Ops that pass on the infinities of one operand alone, with its place: they add it to numbers that they make, or
/// overwrite the other.
struct OfOne {
  std::string_view name;
  std::size_t operand;
};
constexpr auto ofOne = std::to_array<OfOne>({{"addbmm", 0},
                                             {"addcdiv", 0},
                                             {"addcmul", 0},
                                             {"addmm", 0},
                                             {"addmv", 0},
                                             {"addr", 0},
                                             {"baddbmm", 0},
                                             {"convolution", 2},
                                             {"copy", 1},
                                             {"fill", 1},
                                             {"linear", 2}});

/// The operand whose infinities an op passes on.
enum class Passes : std::int8_t { unknown = -3, nothing = -2, all = -1 };  // 0 and up: the operand's place

Passes passes(std::string_view name) {
  if (const auto first = name.find('.'); first != std::string_view::npos) name.remove_prefix(first + 1);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  if (std::find(passing.begin(), passing.end(), name) != passing.end()) return Passes::all;
  const auto one = std::find_if(ofOne.begin(), ofOne.end(), [&](const OfOne& op) { return op.name == name; });
  return one == ofOne.end() ? Passes::nothing : static_cast<Passes>(one->operand);
}

bool isInfinite(const Argument& argument) {
  if (argument.kind == Argument::Kind::real) return std::isinf(argument.real);
  return argument.kind == Argument::Kind::list && std::any_of(argument.items.begin(), argument.items.end(), isInfinite);
}

bool bringsInfinities(ValueKind kind) {
  return kind == ValueKind::input || kind == ValueKind::buffer || kind == ValueKind::constant;
}

}  // namespace

bool hasInfiniteLiteral(const Document& document, BoundSymbolId op) {
  const auto& arguments = document.pattern(document.boundSymbol(op).pattern).arguments;
  return std::any_of(arguments.begin(), arguments.end(), isInfinite);
}

IntendedInfinities::IntendedInfinities(const Analysis& analysis, const std::function<bool(ValueId)>& brings) {
  const auto& document = *analysis.document;
  values_.assign(document.valueCount(), Meant::no);
  for (auto input : analysis.joint.inputs)
    if (input && bringsInfinities(document.value(input).kind) && (!brings || brings(input)))
      values_[input] = Meant::asMask;
  // A symbol or a pattern is looked at once, however many ops share it.
  enum : std::uint8_t { unknown, no, yes };
  IdVector<PatternId, std::uint8_t> patterns;
  IdVector<SymbolId, Passes> symbols;
  IdVector<StorageId, char> written;  // memory that an op wrote such infinities to
  patterns.assign(document.patternCount(), unknown);
  symbols.assign(document.symbolCount(), Passes::unknown);
  written.assign(document.storageCount(), 0);
  const auto holds = [&](ValueId v) {
    if (!v || !document.isTensor(v) || !isFloating(document.meta(v).dtype)) return false;
    const auto storage = document.value(v).storage;
    return mayHold(v) || (storage && written[storage]);
  };
  for (auto op : analysis.joint.ops) {
    const auto& bound = document.boundSymbol(op);
    auto& infinite = patterns[bound.pattern];
    if (infinite == unknown) infinite = hasInfiniteLiteral(document, op) ? yes : no;
    auto& pass = symbols[bound.symbol];
    if (pass == Passes::unknown) pass = passes(document.symbol(bound.symbol).name);
    const auto operands = document.operands(op);
    const bool any = pass == Passes::all || bound.effects & effect::view;
    const auto one = static_cast<std::ptrdiff_t>(pass);
    const bool passesOn = any ? std::any_of(operands.begin(), operands.end(), holds)
                              : one >= 0 && one < std::ssize(operands) && holds(operands[one]);
    if (infinite != yes && !passesOn) continue;
    for (auto output : document.outputs(op))
      if (output) values_[output] = Meant::yes;
    if (bound.effects & effect::writes)
      for (auto operand : writtenOperands(document, op))
        if (const auto storage = document.value(operand).storage) written[storage] = 1;
  }
  for (auto value : document.valueIds())
    if (const auto storage = document.value(value).storage; storage && written[storage] && values_[value] == Meant::no)
      values_[value] = Meant::yes;
}

bool IntendedInfinities::isFault(ValueId value, const TensorStatistics& statistics) const {
  if (statistics.nan > 0) return true;
  if (statistics.inf == 0) return false;
  if (!mayHold(value)) return true;
  return values_[value] == Meant::asMask && statistics.max > 0;
}

bool leavesUninitialised(const Document& document, BoundSymbolId op) {
  return hasTrait(document.symbol(op).name, OpTrait::leavesUnwritten);
}

}  // namespace retrograd
