// Opaque ops: they are in the joint as the file has them, with the results that it declares. A gradient that would
// pass through one is refused as a whole, so that no sum lacks a part without a word.
#include "core/torch/grad/joint_builder.h"
#include "core/trace/opaque.h"

namespace retrograd {

ValueId JointBuilder::opaqueResult(BoundSymbolId op, ValueId declared) {
  const auto meta = document_.value(declared).meta;
  if (!meta) {  // a number or an object: it is only handed on
    writer_.take(declared);
    return declared;
  }
  std::vector<StorageId> storages;
  const auto& known = document_.meta(meta);
  if (known.layout == Layout::strided && known.strides.size() != known.sizes.size())
    throw Error(ErrorCode::badInput,
                "the file does not declare the strides of its result '" + document_.displayName(declared) + "'",
                document_.opName(op));
  return writer_.makeValue({meta, 0, known.storageBytes()}, storages, ValueKind::activation, declared);
}

void JointBuilder::applyOpaque(BoundSymbolId op) {
  const auto call = callOf(op);
  const auto declared = copied(std::as_const(document_).outputs(op));
  std::vector<ValueId> results;
  for (auto value : declared) results.push_back(value ? opaqueResult(op, value) : ValueId());
  const auto effects = static_cast<std::uint8_t>(document_.boundSymbol(op).effects | effect::opaque);
  const auto emitted = writer_.emit(document_.boundSymbol(op).symbol, call.pattern, effects, call.tensors, results,
                                    JointWriter::forwardOrigin(op));
  bool anyRequiresGrad = false;
  for (auto tensor : call.tensors)
    anyRequiresGrad |= document_.isTensor(tensor) && document_.value(tensor).requiresGrad;
  anyRequiresGrad &= region_.gradMode;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (!declared[i]) continue;
    auto& value = document_.value(results[i]);
    if (value.meta)
      value.requiresGrad = anyRequiresGrad && retrograd::isDifferentiable(document_.meta(value.meta).dtype);
    bindings_[declared[i]] = bindingTo(results[i]);
  }
  if (!anyRequiresGrad) return;
  instances_.push_back({.op = op, .opaque = emitted});
}

/// A number that only an opaque op knows decides shapes: nothing can be derived of who reads it.
void JointBuilder::refuseNumberOf(ValueId value, BoundSymbolId reader) const {
  if (!value || document_.isTensor(value)) return;
  const auto producer = document_.value(value).producer;
  if (producer && isOpaque(document_, producer))
    throw Error(ErrorCode::unsupportedOp,
                "it reads " + document_.displayName(value) + ", which the opaque op " + document_.opName(producer) +
                    " makes and which has no declared tensor type: its value is not known",
                document_.opName(reader));
}

/// The backward has come to an opaque op. Gradients of its results end here, and what it may have written has none from
/// here on.
void JointBuilder::refuseThrough(const Instance& instance) {
  const auto operands = std::as_const(document_).operands(instance.opaque);
  bool any = false;
  for (auto output : std::as_const(document_).outputs(instance.opaque)) any |= gradients_.reached(output);
  if (any)
    for (auto operand : operands)
      if (operand) gradients_.refuse(operand, instance.op);
  if (!mayWriteUnseen(document_, instance.opaque)) return;
  for (auto operand : operands) {
    const auto storage = operand ? document_.value(operand).storage : StorageId();
    if (!storage) continue;
    for (auto id : gradients_.values())
      if (gradients_.reached(id) && document_.value(id).storage == storage) gradients_.refuse(id, instance.op);
  }
}

/// Whether a gradient that this op's backward reads was refused; then those it leads to are refused, too.
bool JointBuilder::refuseBefore(const Instance& instance) {
  if (!instance.rule) {
    const auto refused = gradients_.refused(instance.to);
    if (refused) gradients_.refuse(instance.from, refused);
    return refused.valid();
  }
  BoundSymbolId refused;
  for (std::size_t o = 0; o < instance.rule->outputs.size() && !refused; ++o)
    if (instance.rule->outputRequiresGrad[o]) refused = gradients_.refused(output(instance, o));
  if (!refused) return false;
  for (std::int32_t operand = 0; operand < instance.rule->operandCount; ++operand)
    gradients_.refuse(valueOfLocal(instance, operand), refused);
  return true;
}

void JointBuilder::noteRefusals() {
  for (std::size_t i = 0; i < computation_.inputs.size(); ++i) {
    const auto value = bindings_.contains(computation_.trace.inputs[i]) ? computation_.trace.inputs[i] : ValueId();
    if (value && gradients_.reached(value) && options_.differentiate[i] && gradients_.refused(value))
      result_.refused[i] = gradients_.refused(value);
  }
}

}  // namespace retrograd
