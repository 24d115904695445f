// Registered decompositions: the last source of a derivative.
#include "core/torch/grad/joint_builder.h"
#include "core/torch/tracing/recorder.h"

namespace retrograd {

/// Whether a derivative can be had when all gradients come, with nothing but shapes.
bool JointBuilder::isDifferentiable(Rule& rule) {
  if (rule.noDerivative) return false;
  std::vector<MetaId> cotangents(rule.outputs.size());
  for (std::size_t i = 0; i < rule.outputs.size(); ++i) {
    if (!rule.outputRequiresGrad[i]) continue;
    auto meta = document_.meta(rule.locals[rule.outputs[i]].meta);
    meta.strides = contiguousStrides(meta.sizes);
    meta.offset = 0;
    cotangents[i] = document_.internMeta(meta);
  }
  try {
    backwardVariant(document_, rule, cotangents);
    return true;
  } catch (const NeedsData&) {
    return true;  // with data it can
  } catch (const Error&) {
    return false;
  }
}

std::optional<std::vector<JointBuilder::FlatOutput>> JointBuilder::applyDecomposition(
    BoundSymbolId op, SymbolId symbol, PatternId pattern, const std::vector<ValueId>& tensors,
    const std::vector<ValueId>& preferred) {
  const std::string name = document_.symbol(symbol).name;
  const auto* decomposition = options_.rules ? options_.rules->findDecomposition(name) : nullptr;
  if (!decomposition || !region_.gradMode || options_.rules->findGradTransform(name) ||
      options_.rules->findAugmentedPair(name))
    return {};
  auto* rule = rules_.find(symbol, pattern, tensors).rule;
  if (!rule->anyRequiresGrad || isDifferentiable(*rule)) return {};

  struct Depth {  // a decomposition that comes back to its own op would never end
    int& depth;
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
  } depth(decompositionDepth_);
  if (decompositionDepth_ > 32)
    throw Error(ErrorCode::unsupportedOp, "its decomposition leads back to itself", "torch.ops." + name);
  const CallPattern calls = document_.pattern(pattern);
  const auto decomposed =
      decompose(document_, rules_.request(name, calls, tensors, WriteMode::cloneMarked), *decomposition);
  std::vector<FlatOutput> numbered;  // by the decomposition's numbers
  for (auto tensor : tensors) numbered.push_back({tensor, {}});
  const auto wanted = [&](const Argument& output) {
    for (std::size_t i = 0; i < decomposed.outputs.size() && i < preferred.size(); ++i)
      if (decomposed.outputs[i] == output) return preferred[i];
    return ValueId();
  };
  for (const auto& call : decomposed.calls) {
    CallPattern inner{.arguments = call.arguments};
    std::vector<ValueId> operands;
    const std::function<void(Argument&)> renumber = [&](Argument& argument) {
      if (argument.kind == Argument::Kind::operand) {
        operands.push_back(numbered.at(argument.integer).value);
        argument.integer = std::ssize(operands) - 1;
      }
      for (auto& item : argument.items) renumber(item);
    };
    for (auto& argument : inner.arguments) renumber(argument);
    const auto called = writer_.internOp(call.op);
    inner.arguments.resize(document_.symbol(called).arguments.size(), Argument::ofMissing());
    inner.operandCount = static_cast<std::int32_t>(operands.size());
    std::vector<ValueId> names;
    for (const auto& output : call.outputs)
      names.push_back(output.kind == Argument::Kind::operand ? wanted(output) : ValueId());
    const auto results = applyAny(op, called, document_.internPattern(inner), operands, names);
    for (std::size_t i = 0; i < call.outputs.size(); ++i)
      if (call.outputs[i].kind == Argument::Kind::operand) numbered.push_back(results.at(i));
  }
  std::vector<FlatOutput> outputs;
  for (const auto& output : decomposed.outputs)
    outputs.push_back(output.kind == Argument::Kind::operand ? numbered.at(output.integer) : FlatOutput{{}, output});
  return outputs;
}

std::vector<JointBuilder::FlatOutput> JointBuilder::applyAny(BoundSymbolId op, SymbolId symbol, PatternId pattern,
                                                             const std::vector<ValueId>& tensors,
                                                             const std::vector<ValueId>& preferred) {
  if (auto decomposed = applyDecomposition(op, symbol, pattern, tensors, preferred)) return *decomposed;
  const auto instance = apply(op, symbol, pattern, tensors, preferred);
  std::vector<FlatOutput> outputs;
  for (std::size_t i = 0; i < instance.rule->outputs.size(); ++i) {
    const auto local = instance.rule->outputs[i];
    if (instance.rule->numbers[i]) outputs.push_back({{}, instance.rule->numbers[i]});
    else if (local >= 0 && local < instance.rule->operandCount) outputs.push_back({tensors[local], {}});
    else outputs.push_back({output(instance, i), {}});
  }
  return outputs;
}

void JointBuilder::bindFlat(ValueId computationValue, const FlatOutput& output, const Call& call) {
  auto& binding = bindings_[computationValue];
  binding = {};
  binding.number = output.number;
  const auto same = std::ranges::find(call.tensors, output.value);
  if (output.value && same != call.tensors.end()) {
    binding = bindings_[call.computationValues[same - call.tensors.begin()]];
  } else if (output.value) {
    binding = bindingTo(output.value);
  }
}

}  // namespace retrograd
