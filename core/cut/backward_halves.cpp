#include "core/cut/backward_halves.h"

#include <unordered_set>

#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// Marks the ops of dI: those that lead to a gradient of an input, and those whose place in the order matters.
class Marker {
 public:
  Marker(const Document& document, const Trace& backward)
      : document_(document), backward_(backward), marks_(backward.ops.size(), 0) {}

  std::vector<char> run(const std::vector<char>& isInput) {
    for (std::size_t i = 0; i < backward_.outputs.size(); ++i)
      if (isInput.at(i) && backward_.outputs[i]) needed_.insert(backward_.outputs[i]);
    findWritten();
    for (std::size_t i = backward_.ops.size(); i-- > 0;) {
      const auto op = backward_.ops[i];
      if (!leadsToInput(op) && !isOrdered(op)) continue;
      marks_[i] = 1;
      for (auto operand : document_.operands(op))
        if (operand) needed_.insert(operand);
    }
    return std::move(marks_);
  }

 private:
  void findWritten() {
    for (auto op : backward_.ops)
      for (auto value : writtenOperands(document_, op))
        if (const auto storage = document_.value(value).storage) written_.insert(storage);
  }

  bool leadsToInput(BoundSymbolId op) const {
    for (auto output : document_.outputs(op))
      if (output && needed_.contains(output)) return true;
    return false;
  }

  bool isOrdered(BoundSymbolId op) const {
    if (hasSideEffect(document_, op)) return true;
    const auto touches = [&](std::span<const ValueId> values) {
      for (auto value : values)
        if (value && written_.contains(document_.value(value).storage)) return true;
      return false;
    };
    return touches(document_.operands(op)) || touches(document_.outputs(op));
  }

  const Document& document_;
  const Trace& backward_;
  std::vector<char> marks_;
  std::unordered_set<ValueId> needed_;
  std::unordered_set<StorageId> written_;
};

Trace halfOf(const Trace& backward, const char* name) {
  Trace half;
  half.kind = TraceKind::backward;
  half.name = name;
  half.history = backward.history;
  half.history.push_back({"Backward halves", {{"half", name}}, backward.name, 0, {}});
  return half;
}

}  // namespace

BackwardHalves splitBackward(const Document& document, const Trace& backward, const std::vector<char>& isInput) {
  const auto marks = Marker(document, backward).run(isInput);
  BackwardHalves halves{halfOf(backward, "input gradients"), halfOf(backward, "weight gradients")};
  auto &first = halves.inputGradients, &second = halves.weightGradients;
  std::unordered_set<ValueId> madeFirst, madeSecond, taken;
  for (std::size_t i = 0; i < backward.ops.size(); ++i) {
    (marks[i] ? first : second).ops.push_back(backward.ops[i]);
    for (auto output : document.outputs(backward.ops[i]))
      if (output) (marks[i] ? madeFirst : madeSecond).insert(output);
  }
  first.inputs = backward.inputs;
  first.savedCount = backward.savedCount;
  for (std::size_t i = 0; i < backward.outputs.size(); ++i)
    (isInput[i] ? first : second).outputs.push_back(backward.outputs[i]);
  first.resultCount = first.outputs.size();
  second.resultCount = second.outputs.size();
  std::unordered_set<ValueId> given(backward.inputs.begin(), backward.inputs.end());
  const auto take = [&](ValueId value) {
    if (!value || madeSecond.contains(value) || !taken.insert(value).second) return;
    if (madeFirst.contains(value)) first.outputs.push_back(value);
    if (madeFirst.contains(value) || given.contains(value))
      second.inputs.push_back(value);  // else a literal of a formula
  };
  for (auto op : second.ops)
    for (auto operand : document.operands(op)) take(operand);
  for (auto output : second.outputs) take(output);
  second.savedCount = second.inputs.size();
  return halves;
}

}  // namespace retrograd
