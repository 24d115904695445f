#include "core/torch/checking/left_out.h"

#include "core/base/id_vector.h"
#include "core/torch/judging/named_results.h"

namespace retrograd {
namespace {

/// By value: it depends on a cotangent of an output that was left out.
IdVector<ValueId, char> ledToByMissingOutputs(const Analysis& analysis) {
  const auto& document = *analysis.document;
  const auto& joint = analysis.joint;
  const auto inputs = analysis.computation().inputs.size();
  IdVector<ValueId, char> reached(document.valueCount(), 0);
  for (std::size_t i = 0; i < analysis.computation().outputs.size(); ++i)
    if (const auto cotangent = joint.inputs.at(inputs + i); cotangent && analysis.leftOut->reason(joint.outputs[i]))
      reached[cotangent] = 1;
  for (auto op : joint.ops) {
    bool any = false;
    for (auto operand : document.operands(op)) any |= operand && reached[operand];
    if (!any) continue;
    for (auto output : document.outputs(op))
      if (output) reached[output] = 1;
  }
  return reached;
}

}  // namespace

LeftOutNames leftOutNames(const Analysis& analysis) {
  LeftOutNames left;
  if (!analysis.leftOut) return left;
  const auto reached = ledToByMissingOutputs(analysis);
  for (const auto& [name, value] : namedValues(analysis)) {
    if (analysis.leftOut->reason(value)) left.names.insert(name);
    else if (isGradientName(name) && value && reached[value]) left.partial.insert(name);
  }
  for (auto& name : refusedGradientNames(analysis)) left.names.insert(std::move(name));
  return left;
}

std::string leftOutNote(const Analysis& analysis, const LeftOutNames& left) {
  auto note = "opaque ops did not run: " + opaqueOpsText(*analysis.document, analysis.joint.ops);
  std::size_t count = 0;
  for (const auto& name : left.names) {
    if (++count > 3) break;
    note += (count == 1 ? "; left out: " : ", ") + name;
  }
  if (left.names.size() > 3) note += ", ...";
  if (left.names.empty()) note += "; nothing depends on what they compute";
  if (!left.partial.empty())
    note += "; " + std::to_string(left.partial.size()) +
            (left.partial.size() == 1 ? " gradient is" : " gradients are") +
            " not compared with LibTorch's autograd, which lacks the part of the outputs that are left out";
  return note;
}

}  // namespace retrograd
