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
    std::set<ValueId> from;
    std::vector<ValueId> open{answer_.value};
    while (!open.empty()) {
      const auto value = open.back();
      open.pop_back();
      const auto producer = flow.producer(value);
      // What lies in the same memory is the answer itself: to save that instead would save the same bytes.
      const bool isOwn = value == answer_.value || sharesMemory(value, answer_.value);
      const bool atHand = producer < 0 || (!isOwn && saved_.contains(value));
      if (atHand) {
        from.insert(value);
        continue;
      }
      const auto op = joint_.ops[producer];
      if (isOwn && !marks[op]) {
        plan.impossible = reasonAgainst(op);
        return;
      }
      const bool tooDear =
          !isOwn && (isHeavy(familyOf(document_.symbol(document_.boundSymbol(op).symbol).name)) || !marks[op]);
      if (tooDear) {
        if (from.insert(value).second && document_.value(value).storage)
          plan.extraSaved += document_.storage(document_.value(value).storage).bytes;
        continue;
      }
      if (!positions.insert(producer).second) continue;
      for (auto operand : document_.operands(op))
        if (operand) open.push_back(operand);
    }
    for (auto position : positions) {
      const auto op = joint_.ops[position];
      plan.ops.push_back(op);
      if (!flow.isView(position)) plan.cost += opCost(document_, op);
      plan.draws |= (document_.boundSymbol(op).effects & effect::random) != 0;
    }
    plan.from.assign(from.begin(), from.end());
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

WhySaved whySaved(const Analysis& analysis, ValueId value) {
  if (!analysis.document->contains(value)) throw Error(ErrorCode::badUse, "there is no such value");
  return SavedQuestion(analysis, value).run();
}

}  // namespace retrograd
