#include "core/split/recompute.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/id_vector.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// Marks by position in the forward, and the rules that take them back.
class Restriction {
 public:
  Restriction(const Document& document, const Trace& joint, const Dataflow& dataflow, OpMarks& marks)
      : document_(document), joint_(joint), dataflow_(dataflow), marks_(marks), taken_(marks.size(), 0) {}

  OpMarks run() {
    for (std::size_t i = 0; i < joint_.forwardCount; ++i) {
      const auto position = static_cast<std::int32_t>(i);
      const bool opaque = document_.boundSymbol(joint_.ops[i]).effects & effect::opaque;
      if (opaque || dataflow_.writesUnnamed(position)) take(position);
    }
    for (const auto& entry : dataflow_.written())
      if (entry.external || entry.writtenByBackward) takeStorage(entry);
    do {  // a maker that falls takes the early readers of its storage along, and these may be makers of another
      changed_ = false;
      for (const auto& entry : dataflow_.written())
        if (!isWholeMarked(entry)) takeStorage(entry);
    } while (changed_);
    return std::move(taken_);
  }

 private:
  char& mark(std::int32_t position) { return marks_[joint_.ops[position]]; }

  void take(std::int32_t position) {
    if (!mark(position)) return;
    mark(position) = 0;
    taken_[joint_.ops[position]] = 1;
    changed_ = true;
  }

  bool isWholeMarked(const Dataflow::WrittenStorage& entry) {
    return std::all_of(entry.makers.begin(), entry.makers.end(), [&](std::int32_t maker) { return mark(maker); });
  }

  /// The storage is saved as its last write leaves it: its makers run once, and who read it earlier cannot read it
  /// again. A view reads nothing.
  void takeStorage(const Dataflow::WrittenStorage& entry) {
    for (auto maker : entry.makers)
      if (!dataflow_.isView(maker)) take(maker);
    const auto last = entry.writtenByBackward ? static_cast<std::int32_t>(joint_.ops.size())
                      : entry.writers.empty() ? -1
                                              : entry.writers.back();
    for (auto reader : entry.readers)
      if (reader < last && !dataflow_.isView(reader)) take(reader);
  }

  const Document& document_;
  const Trace& joint_;
  const Dataflow& dataflow_;
  OpMarks& marks_;
  OpMarks taken_;
  bool changed_ = false;
};

class Recomputation {
 public:
  Recomputation(Document& document, const Trace& joint, OpMarks marks)
      : document_(document),
        joint_(joint),
        dataflow_(document, joint),
        marks_(std::move(marks)),
        state_(joint.forwardCount, State::none) {
    marks_.resize(document.boundSymbolCount(), 0);
    taken_ = restrictToRecomputable(document, joint, dataflow_, marks_);
    renamed_.resize(document.valueCount());
    for (auto input : joint.inputs) takeName(input);
    for (auto op : joint.ops)
      for (auto output : std::as_const(document).outputs(op)) takeName(output);
  }

  Trace run(std::vector<Problem>* problems) {
    Trace result = joint_;
    if (!findNeeded()) {
      if (problems) report(*problems);
      return result;
    }
    ops_.assign(joint_.ops.begin(), joint_.ops.begin() + joint_.forwardCount);
    for (std::size_t i = joint_.forwardCount; i < joint_.ops.size(); ++i) {
      const auto op = joint_.ops[i];
      requireOf(operandsOf(op));
      ops_.push_back(redirect(op));
    }
    const auto gradients = result.outputs.begin() + joint_.resultCount;
    requireOf({gradients, result.outputs.end()});
    for (auto it = gradients; it != result.outputs.end(); ++it) *it = renamed(*it);
    result.ops = std::move(ops_);
    if (problems) report(*problems);
    return result;
  }

  std::vector<std::pair<BoundSymbolId, BoundSymbolId>> replaced;
  std::size_t copies = 0;

 private:
  enum class State : std::uint8_t { none, needed, queued, copied };

  std::vector<ValueId> operandsOf(BoundSymbolId op) const {
    const auto span = document_.operands(op);
    return {span.begin(), span.end()};
  }
  bool isMarked(std::int32_t position) const { return marks_[joint_.ops[position]]; }
  State& state(std::int32_t position) { return state_[position]; }
  ValueId renamed(ValueId value) const {
    if (!renamed_.contains(value)) return value;
    const auto to = renamed_[value];
    return to ? to : value;
  }

  /// Forward ops that must have run before `value` is read at `position`: its producer, and all that wrote its storage
  /// till then.
  template <class Visit>
  void forEachSource(ValueId value, std::int32_t position, Visit&& visit) const {
    if (!value) return;
    if (const auto producer = dataflow_.producer(value); producer >= 0) visit(producer);
    const auto* writes = dataflow_.writes(document_.value(value).storage);
    if (!writes || writes->external) return;
    for (auto writer : writes->writers)
      if (writer < position) visit(writer);
  }

  /// Which marked ops the backward reaches through marked ops; false where there is none.
  bool findNeeded() {
    std::vector<std::int32_t> stack;
    const auto need = [&](std::int32_t position) {
      if (!isMarked(position)) {
        blocked_.push_back(position);
        return;
      }
      if (state(position) != State::none) return;
      state(position) = State::needed;
      stack.push_back(position);
    };
    const auto border = static_cast<std::int32_t>(joint_.forwardCount);
    for (std::size_t i = joint_.forwardCount; i < joint_.ops.size(); ++i)
      for (auto operand : document_.operands(joint_.ops[i])) forEachSource(operand, border, need);
    for (std::size_t i = joint_.resultCount; i < joint_.outputs.size(); ++i)
      forEachSource(joint_.outputs[i], border, need);
    const bool any = !stack.empty();
    while (!stack.empty()) {
      const auto position = stack.back();
      stack.pop_back();
      for (auto operand : document_.operands(joint_.ops[position])) forEachSource(operand, position, need);
    }
    return any;
  }

  /// Copies what `values` need and is not copied yet, in the forward's order.
  void requireOf(const std::vector<ValueId>& values) {
    std::vector<std::int32_t> batch;
    const auto queue = [&](std::int32_t position) {
      if (state(position) != State::needed) return;
      state(position) = State::queued;
      batch.push_back(position);
    };
    for (auto value : values) forEachSource(value, static_cast<std::int32_t>(joint_.forwardCount), queue);
    for (std::size_t k = 0; k < batch.size(); ++k) {  // grows while it runs
      const auto position = batch[k];
      for (auto operand : document_.operands(joint_.ops[position])) {
        forEachSource(operand, position, queue);
        queueEarlierReaders(operand, position, queue);
      }
    }
    std::sort(batch.begin(), batch.end());
    for (auto position : batch) copy(position);
  }

  /// Before an op writes over a storage, those who are to read it as it was must have run.
  template <class Queue>
  void queueEarlierReaders(ValueId operand, std::int32_t position, Queue&& queue) const {
    const auto* writes = operand ? dataflow_.writes(document_.value(operand).storage) : nullptr;
    if (!writes || !std::binary_search(writes->writers.begin(), writes->writers.end(), position)) return;
    for (auto reader : writes->readers)
      if (reader < position) queue(reader);
  }

  void copy(std::int32_t position) {
    const auto original = joint_.ops[position];
    state(position) = State::copied;
    ++copies;
    auto bound = document_.boundSymbol(original);
    const auto outputs = std::as_const(document_).outputs(original);
    bound.origin = Origin{.op = bound.origin.op, .role = Role::recompute};
    for (auto output : outputs)
      if (output && !bound.origin.value) bound.origin.value = output;
    bound.recomputed = true;
    if (bound.effects & effect::random) bound.replays = bound.replays ? bound.replays : original;
    ops_.push_back(bindAnew(original, bound, /*allOutputs=*/true));
  }

  /// The backward op on recomputed operands; itself where it reads none.
  BoundSymbolId redirect(BoundSymbolId op) {
    const auto span = document_.operands(op);
    auto bound = document_.boundSymbol(op);
    bool changed = std::any_of(span.begin(), span.end(), [&](ValueId operand) { return renamed(operand) != operand; });
    if (hasRenamedTerms(bound.origin)) {
      std::vector<ValueId> now;
      for (auto term : document_.terms(bound.origin)) now.push_back(renamed(term));
      document_.setTerms(bound.origin, now);
      changed = true;
    }
    if (!changed) return op;
    const auto now = bindAnew(op, bound, /*allOutputs=*/false);
    replaced.emplace_back(op, now);
    return now;
  }

  /// Additions into one gradient share a list, of which each has looked at one term more than the one before.
  bool hasRenamedTerms(const Origin& origin) {
    const auto terms = document_.terms(origin);
    auto& plain = plainTerms_[origin.termsBegin];
    while (plain < terms.size() && renamed(terms[plain]) == terms[plain]) ++plain;
    return plain < terms.size();
  }

  /// Binds `op` on the operands of now. Outputs become new values: all of them, or those that lie in a storage which is
  /// another one now.
  BoundSymbolId bindAnew(BoundSymbolId op, const BoundSymbol& bound, bool allOutputs) {
    const auto before = operandsOf(op);
    std::vector<ValueId> operands, outputs;
    std::unordered_map<std::int32_t, StorageId> storages;  // of the operands: where each lies now
    for (auto operand : before) {
      operands.push_back(renamed(operand));
      if (operand && document_.value(operand).storage)
        storages.emplace(document_.value(operand).storage.index, document_.value(operands.back()).storage);
    }
    const auto outputSpan = std::as_const(document_).outputs(op);
    std::vector<ValueId> fresh;
    for (auto output : std::vector<ValueId>(outputSpan.begin(), outputSpan.end())) {
      const bool isOperand = std::find(before.begin(), before.end(), output) != before.end();
      const auto storage = output ? document_.value(output).storage : StorageId();
      const auto lies = storage ? storages.find(storage.index) : storages.end();
      const bool moved = lies != storages.end() && lies->second != storage;
      if (!output || isOperand || !(allOutputs || moved)) {
        outputs.push_back(isOperand ? renamed(output) : output);
        if (output && !isOperand) fresh.push_back(output);
        continue;
      }
      outputs.push_back(makeValue(output, storages, allOutputs));
      fresh.push_back(outputs.back());
    }
    const auto id = document_.addBoundSymbol(bound, operands, outputs);
    for (auto value : fresh) document_.value(value).producer = id;
    return id;
  }

  void takeName(ValueId value) {
    if (value && document_.value(value).name) names_.insert(document_.value(value).name);
  }

  /// bw_<name>, unless the joint has such a value already.
  StringId recomputedName(StringId original) {
    const auto text = "bw_" + std::string(document_.text(original));
    const auto name = document_.intern(text);
    return names_.insert(name).second ? name : document_.internUnique(text);
  }

  ValueId makeValue(ValueId original, std::unordered_map<std::int32_t, StorageId>& storages, bool rename) {
    auto value = document_.value(original);
    if (rename && value.name) value.name = recomputedName(value.name);
    if (rename) value.kind = ValueKind::activation;
    bool allocates = false;
    if (value.storage) {
      const auto bytes = document_.storage(value.storage).bytes;
      auto [it, isNew] = storages.try_emplace(value.storage.index);
      if (isNew) it->second = document_.addStorage(bytes);
      allocates = isNew;
      value.storage = it->second;
    }
    const auto id = document_.addValue(value);
    if (allocates) document_.storage(value.storage).first = id;
    renamed_[original] = id;
    return id;
  }

  /// Ops the backward needs whose marks could not be followed, each once.
  void report(std::vector<Problem>& problems) {
    std::sort(blocked_.begin(), blocked_.end());
    blocked_.erase(std::unique(blocked_.begin(), blocked_.end()), blocked_.end());
    for (auto position : blocked_) {
      const auto op = joint_.ops[position];
      if (taken_[op])
        problems.push_back({Problem::Severity::note,
                            "cannot be recomputed, because of what it writes or reads in place: its result is saved",
                            document_.opName(op), op.index});
    }
  }

  Document& document_;
  const Trace& joint_;
  Dataflow dataflow_;
  OpMarks marks_, taken_;               // by bound symbol
  std::vector<State> state_;            // by position in the forward
  std::vector<std::int32_t> blocked_;   // positions of needed ops that are not recomputed
  IdVector<ValueId, ValueId> renamed_;  // what the backward reads instead
  std::unordered_set<StringId> names_;  // of the joint's values
  std::unordered_map<std::uint32_t, std::size_t>
      plainTerms_;  // by the list's beginning, how many of its first terms are as they were
  std::vector<BoundSymbolId> ops_;
};

}  // namespace

OpMarks restrictToRecomputable(const Document& document, const Trace& joint, const Dataflow& dataflow, OpMarks& marks) {
  marks.resize(document.boundSymbolCount(), 0);
  return Restriction(document, joint, dataflow, marks).run();
}

Trace recompute(Document& document, const Trace& joint, const OpMarks& recomputeOp, std::vector<Problem>* problems) {
  Recomputation recomputation(document, joint, recomputeOp);
  auto result = recomputation.run(problems);
  PassRecord record;
  record.pass = "Recomputation";
  record.parent = joint.name;
  record.parameters = {{"recomputed", std::to_string(recomputation.copies)}};
  record.replaced = std::move(recomputation.replaced);
  result.history.push_back(std::move(record));
  return result;
}

}  // namespace retrograd
