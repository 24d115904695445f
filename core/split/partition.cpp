#include "core/split/partition.h"

#include <algorithm>

#include "core/base/id_vector.h"
#include "core/split/min_cut.h"
#include "core/split/recompute.h"
#include "core/trace/dead_code.h"

namespace retrograd {
namespace {

bool anyMarked(const OpMarks& marks) {
  return std::any_of(marks.begin(), marks.end(), [](char mark) { return mark != 0; });
}

/// What the pass was asked for and what came of it, into the record of the recomputation.
void describe(PassRecord& record, const PartitionOptions& options, const SavedBytes& before, const SavedBytes& after) {
  const bool cut = options.kind == PartitionOptions::minCut || options.budget;
  record.parameters.emplace_back("partition", cut ? "min-cut" : "default");
  if (options.budget) record.parameters.emplace_back("budget", std::to_string(*options.budget));
  for (const auto& what : options.recompute) record.parameters.emplace_back("recompute", what);
  record.parameters.emplace_back("saved bytes before", std::to_string(before.storages));
  record.parameters.emplace_back("saved bytes", std::to_string(after.storages));
}

}  // namespace

PartitionResult partition(Document& document, const Trace& joint, const PartitionOptions& options) {
  PartitionResult result{joint, {}};
  auto marks = markedForRecomputation(document, joint, options.recompute, options.regions);
  const bool cut = options.kind == PartitionOptions::minCut || options.budget;
  if (!cut && !anyMarked(marks)) return result;
  const auto before = savedBytes(document, joint);
  bool asked = anyMarked(marks);
  if (cut) {
    const Dataflow dataflow(document, joint);
    auto required = marks;
    const auto taken = restrictToRecomputable(document, joint, dataflow, required);
    asked = anyMarked(required);
    marks = chooseSaved(document, joint, dataflow, required, options.budget).recomputeOp;
    for (auto op : taken.ids()) marks[op] |= taken[op];  // so that recompute() says why it did not follow them
  }
  const auto recomputed = recompute(document, joint, marks, &result.problems);
  const auto after = savedBytes(document, recomputed);
  if (!asked && after.storages > before.storages) return result;
  result.joint = eliminateDeadCode(document, recomputed);
  describe(result.joint.history[joint.history.size()], options, before, after);
  return result;
}

SplitResult splitJoint(const Document& document, const Trace& joint, std::size_t inputCount) {
  SplitResult result;
  auto &forward = result.forward, &backward = result.backward;
  const auto border = joint.ops.begin() + joint.forwardCount;
  forward.kind = TraceKind::forward;
  forward.name = "forward";
  forward.ops.assign(joint.ops.begin(), border);
  forward.forwardCount = forward.ops.size();
  forward.inputs.assign(joint.inputs.begin(), joint.inputs.begin() + inputCount);
  forward.resultCount = joint.resultCount;
  forward.outputs.assign(joint.outputs.begin(), joint.outputs.begin() + joint.resultCount);

  backward.kind = TraceKind::backward;
  backward.name = "backward";
  backward.ops.assign(border, joint.ops.end());
  backward.outputs.assign(joint.outputs.begin() + joint.resultCount, joint.outputs.end());
  backward.resultCount = backward.outputs.size();

  IdVector<ValueId, char> known(document.valueCount(), 0);  // defined in the backward, a cotangent, or saved already
  for (std::size_t i = inputCount; i < joint.inputs.size(); ++i)
    if (joint.inputs[i]) known[joint.inputs[i]] = 1;
  // Literals inside formulas are in both traces: only what flows in or is computed is saved.
  IdVector<ValueId, char> flowsIn(document.valueCount(), 0);
  for (auto input : joint.inputs)
    if (input) flowsIn[input] = 1;
  for (auto id : known.ids()) {
    const auto& value = document.value(id);
    if (value.kind == ValueKind::constant && !value.producer && !flowsIn[id]) known[id] = 1;
  }
  const auto read = [&](ValueId value) {
    if (!value || known[value]) return;
    known[value] = 1;
    backward.inputs.push_back(value);
  };
  for (auto op : backward.ops) {
    for (auto operand : document.operands(op)) read(operand);
    for (auto output : document.outputs(op))
      if (output) known[output] = 1;
  }
  for (auto output : backward.outputs) read(output);
  backward.savedCount = backward.inputs.size();
  forward.outputs.insert(forward.outputs.end(), backward.inputs.begin(), backward.inputs.end());
  backward.inputs.insert(backward.inputs.end(), joint.inputs.begin() + inputCount, joint.inputs.end());
  return result;
}

}  // namespace retrograd
