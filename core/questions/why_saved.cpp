#include <algorithm>
#include <set>

#include "core/questions/references.h"
#include "core/questions/why.h"
#include "core/split/dataflow.h"
#include "core/split/op_cost.h"
#include "core/split/recompute.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

class SavedQuestion {
 public:
  SavedQuestion(const Analysis& analysis, ValueId value)
      : analysis_(analysis), document_(*analysis.document), joint_(analysis.joint) {
    answer_.value = value;
  }

  WhySaved run() {
    const auto saved = std::span(analysis_.backward.inputs).first(analysis_.backward.savedCount);
    saved_.insert(saved.begin(), saved.end());
    answer_.saved = saved_.contains(answer_.value);
    const auto& value = document_.value(answer_.value);
    if (value.meta) answer_.bytes = document_.meta(value.meta).bytes();
    const bool external = !value.storage || document_.storage(value.storage).external;
    if (!external) answer_.storageBytes = document_.storage(value.storage).bytes;
    for (auto other : saved)
      if (other != answer_.value && value.storage && document_.value(other).storage == value.storage)
        answer_.sharing.push_back(other);
    findUses();
    if (!external) plan();
    return std::move(answer_);
  }

 private:
  void findUses() {
    for (std::size_t i = 0; i < joint_.ops.size(); ++i) {
      const auto op = joint_.ops[i];
      const auto outputs = document_.outputs(op);
      if (i < joint_.forwardCount && !answer_.maker &&
          std::find(outputs.begin(), outputs.end(), answer_.value) != outputs.end()) {
        answer_.maker = op;
        answer_.from = i;
      }
      if (i < joint_.forwardCount) continue;
      const auto operands = document_.operands(op);
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (operands[k] != answer_.value) continue;
        answer_.readers.push_back({op, k, argumentName(document_, op, k), document_.boundSymbol(op).origin.op});
        answer_.lastRead = i;
      }
    }
  }

  /// Back from the value to what is at hand anyway. What cannot run twice has to be saved in its place.
  void plan() {
    if (!answer_.maker) return;
    const Dataflow flow(document_, joint_);
    OpMarks marks(document_.boundSymbolCount(), 0);
    for (std::size_t i = 0; i < joint_.forwardCount; ++i) marks[joint_.ops[i]] = 1;
    restrictToRecomputable(document_, joint_, flow, marks);
    auto& plan = answer_.recompute;
    if (!marks[answer_.maker]) {
      plan.impossible = reasonAgainst(answer_.maker);
      return;
    }
    std::set<std::int32_t> positions;
    std::vector<ValueId> open{answer_.value};
    while (!open.empty()) {
      const auto value = open.back();
      open.pop_back();
      const auto producer = flow.producer(value);
      // What lies in the same memory is the answer itself: to save that instead would save the same bytes.
      const bool isOwn = value == answer_.value || sharesMemory(value, answer_.value);
      const bool atHand = producer < 0 || (!isOwn && saved_.contains(value));
      if (atHand) continue;
      const auto op = joint_.ops[producer];
      if (isOwn && !marks[op]) {
        plan.impossible = reasonAgainst(op);
        return;
      }
      const bool tooDear = !isOwn && (isHeavy(familyOf(document_.symbol(op).name)) || !marks[op]);
      if (tooDear) continue;
      if (!positions.insert(producer).second) continue;
      for (auto operand : document_.operands(op))
        if (operand) open.push_back(operand);
    }
    takeWholeOperations(flow, marks, positions);
    for (auto position : positions) {
      const auto op = joint_.ops[position];
      plan.ops.push_back(op);
      if (!flow.isView(position)) plan.cost += opCost(document_, op);
      plan.draws |= (document_.boundSymbol(op).effects & effect::random) != 0;
    }
    findStarts(flow, positions);
    findFreed(flow, positions);
  }

  /// A partition asks for operations, and recomputes all that the backward reads of one. So these are the ops that run
  /// again, as What If counts them.
  void takeWholeOperations(const Dataflow& flow, const OpMarks& marks, std::set<std::int32_t>& positions) const {
    OpMarks again(document_.boundSymbolCount(), 0);
    for (auto position : positions) {
      const auto op = joint_.ops[position];
      again[op] = 1;
      if (const auto operation = OriginLinks::origin(document_, op))
        for (auto derived : analysis_.links.derived(operation))
          if (marks[derived]) again[derived] = 1;
    }
    std::vector<ValueId> open;
    for (auto i = joint_.forwardCount; i < joint_.ops.size(); ++i)
      for (auto operand : document_.operands(joint_.ops[i])) open.push_back(operand);
    for (std::size_t i = joint_.resultCount; i < joint_.outputs.size(); ++i) open.push_back(joint_.outputs[i]);
    std::set<std::int32_t> all;
    while (!open.empty()) {
      const auto value = open.back();
      open.pop_back();
      const auto producer = value ? flow.producer(value) : -1;
      if (producer < 0 || !again[joint_.ops[producer]] || !all.insert(producer).second) continue;
      for (auto operand : document_.operands(joint_.ops[producer]))
        if (operand) open.push_back(operand);
    }
    positions = std::move(all);
  }

  /// What the ops begin with, and which of it would have to be saved for them.
  void findStarts(const Dataflow& flow, const std::set<std::int32_t>& positions) {
    auto& plan = answer_.recompute;
    std::set<ValueId> from;
    std::set<StorageId> extra, kept;  // memory is kept through any value on it
    for (auto value : saved_)
      if (!sharesMemory(value, answer_.value)) kept.insert(document_.value(value).storage);
    for (auto position : positions)
      for (auto operand : document_.operands(joint_.ops[position])) {
        const auto producer = flow.producer(operand);
        if (!operand || (producer >= 0 && positions.contains(producer))) continue;
        from.insert(operand);
        const auto storage = document_.value(operand).storage;
        if (producer < 0 || saved_.contains(operand) || kept.contains(storage) || !storage ||
            document_.storage(storage).external)
          continue;
        if (extra.insert(storage).second) plan.extraSaved += document_.storage(storage).bytes;
      }
    plan.from.assign(from.begin(), from.end());
  }

  /// Memory goes where all that is saved of it is made again, from other memory.
  void findFreed(const Dataflow& flow, const std::set<std::int32_t>& positions) {
    std::set<StorageId> made, kept;
    for (auto value : answer_.recompute.from) kept.insert(document_.value(value).storage);
    for (auto value : saved_) {
      const auto storage = document_.value(value).storage;
      if (!storage || document_.storage(storage).external) continue;
      (positions.contains(flow.producer(value)) ? made : kept).insert(storage);
    }
    for (auto storage : made)
      if (!kept.contains(storage)) answer_.recompute.freed += document_.storage(storage).bytes;
  }

  bool sharesMemory(ValueId a, ValueId b) const {
    const auto storage = document_.value(a).storage;
    return storage && storage == document_.value(b).storage;
  }

  std::string reasonAgainst(BoundSymbolId op) const {
    const auto effects = document_.boundSymbol(op).effects;
    if (effects & effect::writes) return "its op writes in place";
    if (effects & effect::opaque) return "its op may not run twice";
    if (effects & effect::needsData) return "its result depends on data";
    return "what it is made of is written over later";
  }

  const Analysis& analysis_;
  const Document& document_;
  const Trace& joint_;
  std::set<ValueId> saved_;
  WhySaved answer_;
};

}  // namespace

SavedValues savedValues(const Analysis& analysis) {
  const auto& outputs = analysis.forward.outputs;
  const auto results = std::min(analysis.forward.resultCount, outputs.size());
  return savedValues(*analysis.document, std::span(outputs).subspan(results), analysis.forward.ops);
}

WhySaved whySaved(const Analysis& analysis, ValueId value) {
  if (!analysis.document->contains(value)) badUse("there is no such value");
  return SavedQuestion(analysis, value).run();
}

}  // namespace retrograd
