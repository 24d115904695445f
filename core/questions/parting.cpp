#include "core/questions/parting.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/derivation/gradient_of.h"
#include "core/questions/op_place.h"
#include "core/trace/effects.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

/// Which ops of the forward a tensor leads to, also through memory that they write.
class Reach {
 public:
  explicit Reach(const Analysis& analysis) : document_(*analysis.document), ops_(analysis.forward.ops) {}

  /// `follows`: whether the way goes on through a value.
  template <class Follows>
  IdVector<BoundSymbolId, char> from(ValueId start, Follows&& follows) const {
    IdVector<BoundSymbolId, char> reached(document_.boundSymbolCount(), 0);
    IdVector<ValueId, char> values(document_.valueCount(), 0);
    IdVector<StorageId, char> memory(document_.storageCount(), 0);
    values[start] = 1;
    for (auto op : ops_) {
      const auto operands = document_.operands(op);
      const bool reads = std::any_of(operands.begin(), operands.end(), [&](ValueId operand) {
        if (!operand) return false;
        const auto storage = document_.value(operand).storage;
        return values[operand] || (storage && memory[storage]);
      });
      if (!reads) continue;
      reached[op] = 1;
      for (auto output : document_.outputs(op))
        if (output && isNumber(output) && follows(output)) values[output] = 1;
      for (auto operand : writtenOperands(document_, op))
        if (const auto storage = document_.value(operand).storage) memory[storage] = 1;
    }
    return reached;
  }

 private:
  bool isNumber(ValueId value) const {
    return document_.isTensor(value) && isDifferentiable(document_.meta(document_.value(value).meta).dtype);
  }

  const Document& document_;
  const std::vector<BoundSymbolId>& ops_;
};

/// Ops of the forward that every wrong gradient may pass and no right one does; in order.
std::vector<BoundSymbolId> suspectOps(const Analysis& analysis, const std::set<ValueId>& wrong,
                                      const std::set<ValueId>& right) {
  const auto& document = *analysis.document;
  const auto gradients = gradientsOfValues(analysis);
  const Reach reach(analysis);
  IdVector<BoundSymbolId, std::size_t> wrongs(document.boundSymbolCount(), 0);
  IdVector<BoundSymbolId, char> rights(document.boundSymbolCount(), 0);
  const auto mark = [&](ValueId input, bool isWrong) {
    // A right gradient clears only what it flowed through.
    const auto reached = reach.from(input, [&](ValueId value) { return isWrong || gradients[value]; });
    for (auto op : analysis.forward.ops) {
      if (!reached[op]) continue;
      if (isWrong) ++wrongs[op];
      else rights[op] = 1;
    }
  };
  for (auto input : wrong) mark(input, true);
  for (auto input : right) mark(input, false);
  std::vector<BoundSymbolId> suspects;
  for (const auto wanted : {wrong.size(), std::size_t{1}}) {
    for (auto op : analysis.forward.ops)
      if (wrongs[op] >= wanted && wrongs[op] > 0 && !rights[op]) suspects.push_back(op);
    if (!suspects.empty()) break;
  }
  return suspects;
}

const SourceStack* stackOf(const Document& document, BoundSymbolId op) {
  const auto source = document.boundSymbol(op).source;
  return source ? &document.source(source) : nullptr;
}

/// The recorded Function that an op belongs to: the one that is called, else one whose backward comes soon after the
/// op's innermost line, as the backward of a class comes after its forward.
const CustomBackward* recordedFunction(const SourceStack& stack, const std::vector<CustomBackward>& recorded) {
  constexpr std::int64_t soon = 30;
  const auto called = customFunctionFrame(stack) ? customFunctionName(stack) : std::string();
  const auto* frame = shownFrame(stack);
  for (const auto& custom : recorded) {
    if (custom.isHook) continue;
    if (!called.empty() && (custom.name == called || custom.name.ends_with("." + called))) return &custom;
    const bool inside = frame && stack.size() > 1 && frame->file == custom.file && frame->line < custom.line &&
                        custom.line - frame->line <= soon;
    if (called.empty() && inside && frame->function == "forward") return &custom;
  }
  return nullptr;
}

/// The last op at or above the line that registered the hook, in its file; none where no op is.
BoundSymbolId hookedOp(const Document& document, const std::vector<BoundSymbolId>& suspects,
                       const CustomBackward& hook) {
  BoundSymbolId found;
  std::int64_t nearest = -1;
  for (auto op : suspects) {
    const auto* stack = stackOf(document, op);
    if (!stack) continue;
    for (const auto& frame : *stack)
      if (frame.file == hook.file && frame.line <= hook.line && frame.line >= nearest) {
        nearest = frame.line;
        found = op;
      }
  }
  return found;
}

PartsAt describe(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  PartsAt at;
  at.index = op.index;
  at.op = document.opName(op);
  at.module = document.text(bound.module);
  const auto* stack = stackOf(document, op);
  if (const auto* frame = stack ? shownFrame(*stack) : nullptr)
    at.line = fmt::format("{}:{}{}", frame->file, frame->line, frame->code.empty() ? "" : ": " + frame->code);
  at.text = fmt::format("gradients part at #{} {}", op.index, placeOfOp(document, op));
  return at;
}

}  // namespace

std::optional<PartsAt> whereGradientsPart(const Analysis& analysis, const std::set<ValueId>& wrong,
                                          const std::set<ValueId>& right, const std::vector<CustomBackward>& recorded) {
  const auto& document = *analysis.document;
  const auto suspects = suspectOps(analysis, wrong, right);
  if (suspects.empty()) return std::nullopt;
  for (auto op = suspects.rbegin(); op != suspects.rend(); ++op) {
    const auto* stack = stackOf(document, *op);
    if (!stack) continue;
    const auto* function = recordedFunction(*stack, recorded);
    const auto* frame = customFunctionFrame(*stack);
    if (!function && !frame) continue;
    auto at = describe(document, *op);
    at.kind = "custom backward";
    at.name = function ? function->name : customFunctionName(*stack);
    at.text += fmt::format("; it has a custom backward{}, which the graph does not hold",
                           at.name.empty() ? "" : " (" + at.name + ")");
    return at;
  }
  for (const auto& hook : recorded) {
    if (!hook.isHook) continue;
    const auto op = hookedOp(document, suspects, hook);
    auto at = describe(document, op ? op : suspects.back());
    at.kind = "hook";
    at.name = hook.name;
    at.text += fmt::format("; a hook on a gradient, which the graph does not hold, is registered at {}:{}", hook.file,
                           hook.line);
    return at;
  }
  auto at = describe(document, suspects.back());
  if (suspects.size() > 1)
    at.text += fmt::format(" or at one of {} ops before it, back to #{}", suspects.size() - 1, suspects.front().index);
  at.text += "; a hook or a custom backward, which a graph does not hold, may be there";
  return at;
}

}  // namespace retrograd
