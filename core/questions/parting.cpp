#include "core/questions/parting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/derivation/gradient_of.h"
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
    return document_.isTensor(value) && isDifferentiable(document_.meta(value).dtype);
  }

  const Document& document_;
  const std::vector<BoundSymbolId>& ops_;
};

/// What reaches the ops of the forward from the inputs, by the inputs' gradients.
struct Reached {
  IdVector<BoundSymbolId, std::size_t> wrongs;  ///< how many inputs with a wrong gradient lead to the op
  IdVector<BoundSymbolId, char> rights;         ///< an input with a right one does

  /// May give some input a wrong gradient.
  bool isSuspect(BoundSymbolId op) const { return wrongs[op] > 0 && !rights[op]; }
};

Reached reachedOps(const Analysis& analysis, const GradientsOfInputs& given) {
  const auto& document = *analysis.document;
  const auto gradients = gradientsOfValues(analysis);
  const Reach reach(analysis);
  Reached all{IdVector<BoundSymbolId, std::size_t>(document.boundSymbolCount(), 0),
              IdVector<BoundSymbolId, char>(document.boundSymbolCount(), 0)};
  const auto mark = [&](ValueId input, bool isWrong) {
    // A right gradient clears only what it flowed through.
    const auto reached = reach.from(input, [&](ValueId value) { return isWrong || gradients[value]; });
    for (auto op : analysis.forward.ops) {
      if (!reached[op]) continue;
      if (isWrong) ++all.wrongs[op];
      else all.rights[op] = 1;
    }
  };
  for (auto input : given.wrong) mark(input, true);
  for (auto input : given.right) mark(input, false);
  return all;
}

/// Ops of the forward that every wrong gradient may pass and no right one does; in order.
std::vector<BoundSymbolId> suspectOps(const Analysis& analysis, const Reached& reached, std::size_t wrongs) {
  std::vector<BoundSymbolId> suspects;
  for (const auto wanted : {wrongs, std::size_t{1}}) {
    for (auto op : analysis.forward.ops)
      if (reached.wrongs[op] >= wanted && reached.isSuspect(op)) suspects.push_back(op);
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

/// The custom Function that an op belongs to, by its name; absent where it belongs to none, empty where it has no name.
std::optional<std::string> functionOf(const Document& document, BoundSymbolId op,
                                      const std::vector<CustomBackward>& recorded) {
  const auto* stack = stackOf(document, op);
  if (!stack) return std::nullopt;
  if (const auto* function = recordedFunction(*stack, recorded)) return function->name;
  return customFunctionFrame(*stack) ? std::optional(customFunctionName(*stack)) : std::nullopt;
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

Claim partingAt(const Document& document, BoundSymbolId op) {
  return {.by = Producer::reference,
          .kind = "gradients-part",
          .sentence = "gradients part at " + placeOfOp(document, op),
          .line = pythonLine(document, op),
          .op = op};
}

/// The calls of custom Functions in a forward: neighbouring ops of the same Function and module.
class Calls {
 public:
  using Ops = std::vector<BoundSymbolId>;

  Calls(const Analysis& analysis, const std::vector<CustomBackward>& recorded)
      : document_(*analysis.document), makers_(document_.valueCount(), BoundSymbolId()) {
    const BoundSymbol* last = nullptr;
    for (auto op : analysis.forward.ops) {
      for (auto output : document_.outputs(op))
        if (output) makers_[output] = op;
      const auto name = functionOf(document_, op, recorded);
      const auto& bound = document_.boundSymbol(op);
      if (!name) last = nullptr;
      if (!name) continue;
      if (!last || last->module != bound.module || all_.back().first != *name) all_.emplace_back(*name, Ops());
      all_.back().second.push_back(op);
      last = &bound;
    }
  }

  /// The ops of the call that `op` belongs to.
  const Ops& of(BoundSymbolId op) const {
    return std::find_if(all_.begin(), all_.end(), [&](const auto& call) { return contains(call.second, op); })->second;
  }

  /// The differentiable inputs of a call that inputs with a wrong gradient lead to and none with a right one.
  std::vector<std::string> wrongInputs(const Ops& call, const Reached& reached, const GradientsOfInputs& given) const {
    std::vector<std::string> names;
    for (auto op : call)
      for (auto operand : document_.operands(op)) {
        if (!operand || !document_.isTensor(operand)) continue;
        const auto maker = makers_[operand];
        if (!isDifferentiable(document_.meta(operand).dtype) || contains(call, maker)) continue;
        const bool isWrong = maker ? reached.isSuspect(maker) : given.wrong.contains(operand);
        const auto name = document_.displayName(operand);
        if (isWrong && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    return names;
  }

  /// Other calls of the Function that a wrong gradient passes: "#12 in module layers.0.norm".
  std::vector<std::string> others(const std::string& name, const Ops& than, const Reached& reached) const {
    std::vector<std::string> texts;
    for (auto call = all_.rbegin(); call != all_.rend(); ++call) {
      const auto& ops = call->second;
      const auto found =
          std::find_if(ops.rbegin(), ops.rend(), [&](BoundSymbolId op) { return reached.isSuspect(op); });
      if (call->first != name || ops == than || found == ops.rend()) continue;
      const auto last = *found;
      const auto module = document_.text(document_.boundSymbol(last).module);
      texts.push_back(fmt::format("#{}{}{}", last.index, module.empty() ? "" : " in module ", module));
    }
    return texts;
  }

 private:
  static bool contains(const Ops& ops, BoundSymbolId op) {
    return op && std::find(ops.begin(), ops.end(), op) != ops.end();
  }

  const Document& document_;
  IdVector<ValueId, BoundSymbolId> makers_;  // in the forward
  std::vector<std::pair<std::string, Ops>> all_;
};

/// "RMSNormFn.backward": all Functions that ops of `suspects` belong to, and the hooks, one of which is at fault.
std::vector<std::string> possibleCulprits(const Document& document, const std::vector<BoundSymbolId>& suspects,
                                          const std::vector<CustomBackward>& recorded) {
  std::vector<std::string> culprits;
  const auto add = [&](std::string text) {
    if (std::find(culprits.begin(), culprits.end(), text) == culprits.end()) culprits.push_back(std::move(text));
  };
  for (auto op = suspects.rbegin(); op != suspects.rend(); ++op)
    if (const auto name = functionOf(document, *op, recorded))
      add(name->empty() ? "a custom backward" : *name + ".backward");
  for (const auto& hook : recorded)
    if (hook.isHook) add(fmt::format("the hook at {}:{}", hook.file, hook.line));
  return culprits;
}

Claim describeFunction(const Analysis& analysis, BoundSymbolId op, const std::vector<BoundSymbolId>& suspects,
                       const Reached& reached, const GradientsOfInputs& given,
                       const std::vector<CustomBackward>& recorded) {
  constexpr std::size_t shown = 3;
  const auto& document = *analysis.document;
  auto claim = partingAt(document, op);
  claim.kind = "custom-backward";
  claim.subject = *functionOf(document, op, recorded);
  const auto culprits = possibleCulprits(document, suspects, recorded);
  const Calls calls(analysis, recorded);
  const auto& call = calls.of(op);
  auto headline = fmt::format("{}{} gives another gradient than the ops of {}", culprits.size() > 1 ? "one of " : "",
                              fmt::join(culprits, ", "), culprits.size() > 1 ? "the forward" : "its forward");
  if (const auto inputs = calls.wrongInputs(call, reached, given); culprits.size() == 1 && !inputs.empty())
    headline += fmt::format(" for its input {}", fmt::join(inputs, ", "));
  if (given.factor) headline += fmt::format(", {:.6g} times theirs", *given.factor);
  claim.sentence = headline + ": " + claim.sentence;
  if (auto others = calls.others(claim.subject, call, reached); !others.empty()) {
    const auto count = others.size();
    others.resize(std::min(count, shown));
    claim.sentence += fmt::format("; it is also called at {}{}", fmt::join(others, ", "),
                                  count > shown ? fmt::format(" and {} more", count - shown) : "");
  }
  claim.sentence += "; the graph does not hold a custom backward";
  return claim;
}

}  // namespace

std::optional<Claim> whereGradientsPart(const Analysis& analysis, const GradientsOfInputs& gradients,
                                        const std::vector<CustomBackward>& recorded) {
  const auto& document = *analysis.document;
  const auto reached = reachedOps(analysis, gradients);
  const auto suspects = suspectOps(analysis, reached, gradients.wrong.size());
  if (suspects.empty()) return std::nullopt;
  for (auto op = suspects.rbegin(); op != suspects.rend(); ++op)
    if (functionOf(document, *op, recorded))
      return describeFunction(analysis, *op, suspects, reached, gradients, recorded);
  for (const auto& hook : recorded) {
    if (!hook.isHook) continue;
    const auto op = hookedOp(document, suspects, hook);
    auto claim = partingAt(document, op ? op : suspects.back());
    claim.kind = "hook";
    claim.subject = hook.name;
    claim.sentence += fmt::format("; a hook on a gradient, which the graph does not hold, is registered at {}:{}",
                                  hook.file, hook.line);
    return claim;
  }
  auto claim = partingAt(document, suspects.back());
  if (suspects.size() > 1)
    claim.sentence +=
        fmt::format(" or at one of {} ops before it, back to #{}", suspects.size() - 1, suspects.front().index);
  claim.sentence += "; a hook or a custom backward, which a graph does not hold, may be there";
  return claim;
}

}  // namespace retrograd
