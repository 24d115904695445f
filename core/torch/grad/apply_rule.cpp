#include "core/torch/grad/joint_builder.h"

namespace retrograd {

Instance JointBuilder::apply(BoundSymbolId op, SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors, std::span<const ValueId> preferred,
                             WriteMode writes) {
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
