#include "core/torch/grad/joint_builder.h"

namespace retrograd {

/// The kernel of linalg_pinv calls matmul, which autocast casts; of its own op autocast knows nothing. What is recorded
/// as one op would run without the cast.
void JointBuilder::refuseHiddenCasts(SymbolId symbol, std::span<const ValueId> tensors) const {
  if (!region_.autocast.active || !region_.autocast.enabled || tensors.empty()) return;
  const auto& name = document_.symbol(symbol).name;
  const auto dtype = document_.meta(tensors[0]).dtype;
  if (name.starts_with("aten.linalg_pinv.") && dtype != DType::f64 && dtype != DType::c128)
    throw Error(
        ErrorCode::unsupportedOp,
        "in an autocast region its kernel casts a product that the trace does not show; move the op out of the region",
        "torch.ops." + name);
}

Instance JointBuilder::apply(BoundSymbolId op, SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors,
                             std::span<const ValueId> preferred, WriteMode writes) {
  refuseHiddenCasts(symbol, tensors);
  Instance instance;
  instance.op = op;
  instance.symbol = symbol;
  instance.pattern = pattern;
  instance.autocast = rules_.autocastIndex();
  instance.writes = writes;
  const auto found = rules_.find(symbol, pattern, tensors, writes);
  instance.rule = found.rule;
  instance.withData = found.withData;
  const Rule& rule = *instance.rule;
  instance.localsBegin = writer_.addLocals(rule, tensors, ValueKind::activation, preferred);
  for (const auto& ruleOp : rule.forward) writer_.emit(ruleOp, instance.localsBegin, JointWriter::forwardOrigin(op));
  for (std::size_t i = 0; i < rule.outputs.size(); ++i)
    if (rule.outputRequiresGrad[i]) document_.value(output(instance, i)).requiresGrad = true;
  if (rule.anyRequiresGrad) instances_.push_back(instance);
  return instance;
}

ValueId JointBuilder::output(const Instance& instance, std::size_t flatOutput) const {
  const auto local = instance.rule->outputs.at(flatOutput);
  return local < 0 ? ValueId() : valueOfLocal(instance, local);
}

}  // namespace retrograd
