#include "core/split/split.h"

#include "core/base/id_vector.h"

namespace retrograd {

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
