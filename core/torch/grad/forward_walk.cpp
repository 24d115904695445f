#include <algorithm>

#include "core/torch/grad/joint_builder.h"
#include "core/torch/grad/number_ops.h"
#include "core/trace/op_traits.h"
#include "core/trace/opaque.h"

namespace retrograd {

JointBuilder::JointBuilder(Document& document, const Computation& computation, const TransformOptions& options,
                           RuleCache& cache, const Progress& progress)
    : document_(document),
      computation_(computation),
      options_(options),
      progress_(progress),
      aliases_(document),
      writer_(document, region_, result_.constants, options.realValues),
      rules_(document, options, cache, region_, writer_.ops(), result_.dataDependent),
      gradients_(document, rules_, writer_),
      zeros_(document) {
  bindings_.resize(document_.valueCount());
  tracksAliases_ = needsAliases();
  if (tracksAliases_) writer_.tell(aliases_);
}

JointResult JointBuilder::build() {
  result_.gradientSizes = options_.gradientSizes;
  bindInputs();
  walk(computation_.trace.ops);
  for (const auto& output :
       computation_.outputs) {  // a view of something written since is made again, still in the forward
    outputs_.push_back(output.value ? resolve(output.value).value : ValueId());
  }
  renewWhatIsReadLate();  // before inputs get their content: what they are copied over represents them as they were
  copyBack();
  const auto forwardCount = writer_.ops().size();
  replayBackward();
  writer_.moveStorages();
  auto& joint = result_.joint;
  joint.kind = TraceKind::joint;
  joint.name = "joint";
  joint.ops = writer_.takeOps();
  joint.forwardCount = forwardCount;
  joint.inputs = computation_.trace.inputs;
  joint.inputs.insert(joint.inputs.end(), cotangents_.begin(), cotangents_.end());
  joint.resultCount = outputs_.size();
  joint.outputs = outputs_;
  for (std::size_t i = 0; i < computation_.inputs.size(); ++i) {
    const auto value = computation_.trace.inputs[i];
    const bool wanted = gradients_.reached(value) && options_.differentiate[i] && !gradients_.refused(value);
    joint.outputs.push_back(wanted ? gradients_.sum(value) : ValueId());
  }
  noteRefusals();
  return std::move(result_);
}

void JointBuilder::bindInputs() {
  std::map<std::string, ValueId> firstOfStorage;
  for (std::size_t i = 0; i < computation_.inputs.size(); ++i) {
    const auto& input = computation_.inputs[i];
    const auto id = computation_.trace.inputs[i];
    if (!id) continue;
    auto& binding = bindings_[id];
    writer_.take(id);
    if (auto number = options_.numbers.find(id); number != options_.numbers.end()) {
      binding.number = number->second;
      continue;
    }
    binding.value = id;
    auto& value = document_.value(id);
    if (!value.meta) continue;  // a token or object: it only orders
    if (options_.inputMetas[i] && !(*options_.inputMetas[i] == document_.meta(value.meta))) {
      auto meta = *options_.inputMetas[i];
      if (meta.sizes.size() == document_.meta(value.meta).symbols.size())
        meta.symbols = document_.meta(value.meta).symbols;
      value.meta = document_.internMeta(meta);
    }
    value.requiresGrad = options_.differentiate[i];
    if (!value.storage) value.storage = document_.addStorage(document_.meta(value.meta).storageBytes(), id, true);
    document_.storage(value.storage).external = true;
    // A tied parameter has several placeholders; they are one value, so that its gradients meet.
    if (!input.storageKey.empty()) {
      const auto [first, isNew] = firstOfStorage.try_emplace(input.storageKey, id);
      if (!isNew && document_.value(first->second).meta == value.meta) binding.value = first->second;
    }
    binding = bindingTo(binding.value);
    if (binding.tensor < 0 || binding.value != id) continue;
    auto& family = aliases_.family(tensors_[binding.tensor].family);
    family.input = static_cast<std::int32_t>(i);
    family.leaf = value.requiresGrad;
  }
  noteWhatIsReadLate(computation_.trace.inputs);
}

void JointBuilder::walk(const std::vector<BoundSymbolId>& ops) {
  for (auto op : ops) {
    progress_.check();
    try {
      visit(op);
      noteWhatIsReadLate(std::as_const(document_).outputs(op));
    } catch (const Error& e) {
      const auto& bound = document_.boundSymbol(op);
      if (e.code() == ErrorCode::cancelled || !bound.name || e.place().find("node ") != std::string::npos) throw;
      throw e.at("node " + std::string(document_.text(bound.name)));
    }
  }
}

void JointBuilder::visit(BoundSymbolId op) {
  const GradModeScope mode(region_, region_.gradMode && document_.boundSymbol(op).gradMode);
  const auto symbolId = document_.boundSymbol(op).symbol;
  const Symbol& symbol = document_.symbol(symbolId);
  const std::string_view name = symbol.name;
  if (isOpaque(symbol)) return applyOpaque(op);
  if (symbol.isHigherOrder) return applyHigherOrder(op);
  if (name == "pippy._pipe_split.default") return;  // marks a stage border in the computation; computes nothing
  if (name.starts_with("aten._assert_async")) return emitVerbatim(op);
  if (symbol.schema.empty() || hasTrait(name, OpTrait::asksTensor)) return evaluateNumbers(op);
  // Checks of what was true on export; shapes are checked by the ops themselves.
  if (symbol.returns.empty() && hasTrait(name, OpTrait::check)) return;
  refuseSharedStatistics(op);
  if (symbol.isMutable) return applyMutation(op);
  applyOp(op);
}

void JointBuilder::applyOp(BoundSymbolId op) {
  const auto call = callOf(op);
  for (auto tensor : call.tensors) refuseNumberOf(tensor, op);
  if (writesUnseen(op)) return applyWriter(op, call, WriteMode::cloneAll);
  const auto preferred = copied(std::as_const(document_).outputs(op));
  const auto symbol = document_.boundSymbol(op).symbol;
  if (const auto decomposed = applyDecomposition(op, symbol, call.pattern, call.tensors, preferred)) {
    for (std::size_t i = 0; i < preferred.size() && i < decomposed->size(); ++i)
      if (preferred[i]) bindFlat(preferred[i], (*decomposed)[i], call);
    return;
  }
  const auto instance = apply(op, symbol, call.pattern, call.tensors, preferred);
  bindOutputs(op, instance, call);
}

Argument JointBuilder::argumentValue(BoundSymbolId op, const Argument& argument) {
  if (argument.kind != Argument::Kind::operand) return argument;
  const auto id = document_.operands(op)[argument.integer];
  const auto& binding = resolve(id);
  if (!binding.number) refuseNumberOf(binding.value, op);
  if (!binding.number) throw Error(ErrorCode::badInput, "a number is expected", document_.displayName(id));
  return *binding.number;
}

JointBuilder::Call JointBuilder::callOf(BoundSymbolId op) {
  Call call;
  const auto operands = copied(document_.operands(op));
  bool plain = true;
  for (auto id : operands) {
    const auto& binding = resolve(id);
    plain &= !binding.number && binding.value;
    call.tensors.push_back(binding.value);
    call.computationValues.push_back(id);
  }
  call.pattern = document_.boundSymbol(op).pattern;
  if (plain) return call;
  // Some operands are numbers (or None) under these inputs: put them into the pattern and renumber the holes.
  CallPattern pattern = document_.pattern(call.pattern);
  Call reduced;
  const std::function<void(Argument&)> replace = [&](Argument& argument) {
    if (argument.kind == Argument::Kind::operand) {
      const std::size_t hole = argument.integer;
      const auto& binding = resolve(operands[hole]);
      if (binding.number) argument = *binding.number;
      else if (!binding.value) argument = Argument::ofNone();
      else {
        argument.integer = std::ssize(reduced.tensors);
        reduced.tensors.push_back(binding.value);
        reduced.computationValues.push_back(operands[hole]);
      }
    }
    for (auto& item : argument.items) replace(item);
  };
  for (auto& argument : pattern.arguments) replace(argument);
  pattern.operandCount = static_cast<std::int32_t>(reduced.tensors.size());
  reduced.pattern = document_.internPattern(pattern);
  return reduced;
}

void JointBuilder::bindOutputs(BoundSymbolId op, const Instance& instance, const Call& call) {
  const auto outputs = copied(std::as_const(document_).outputs(op));
  const Rule& rule = *instance.rule;
  for (std::size_t i = 0; i < outputs.size() && i < rule.outputs.size(); ++i) {
    if (!outputs[i]) continue;
    auto& binding = bindings_[outputs[i]];
    binding = {};
    if (rule.numbers[i]) {
      binding.number = rule.numbers[i];
    } else if (rule.outputs[i] >= 0 && rule.outputs[i] < rule.operandCount) {
      binding = bindings_[call.computationValues[rule.outputs[i]]];
    } else {
      binding = bindingTo(output(instance, i));
    }
  }
}

void JointBuilder::evaluateNumbers(BoundSymbolId op) {
  const std::string name = document_.symbol(op).name;
  const CallPattern pattern = document_.pattern(document_.boundSymbol(op).pattern);
  const auto outputSpan = std::as_const(document_).outputs(op);
  std::optional<Argument> number;
  const bool asksTensor = hasTrait(name, OpTrait::asksTensor);
  if (asksTensor && !pattern.arguments.empty() && pattern.arguments[0].kind == Argument::Kind::operand) {
    const auto value = resolve(document_.operands(op)[pattern.arguments[0].integer]).value;
    if (value && document_.isTensor(value)) {
      const auto& meta = document_.meta(value);
      const auto at = [&](const std::vector<std::int64_t>& list) {
        auto dim = argumentValue(op, pattern.arguments.at(1)).integer;
        if (dim < 0) dim += std::ssize(list);
        if (dim < 0 || dim >= std::ssize(list)) throw Error(ErrorCode::badInput, "no such dimension", name);
        return Argument::ofInt(list[dim]);
      };
      if (name == "aten.sym_size.int") number = at(meta.sizes);
      else if (name == "aten.sym_stride.int") number = at(meta.strides);
      else if (name == "aten.sym_numel.default") number = Argument::ofInt(meta.elements());
      else if (name == "aten.sym_storage_offset.default") number = Argument::ofInt(meta.offset);
    }
  }
  if (!number && !asksTensor) {
    std::vector<Argument> operands;
    for (const auto& argument : pattern.arguments)
      if (argument.kind != Argument::Kind::missing) operands.push_back(argumentValue(op, argument));
    number = evaluateNumberOp(name, operands);
  }
  if (outputSpan.empty()) return;
  if (!number) throw Error(ErrorCode::unknownOp, "no such op is known here", name);
  bindings_[outputSpan[0]] = Binding{.number = std::move(number)};
}

void JointBuilder::emitVerbatim(BoundSymbolId op) {
  const auto call = callOf(op);
  writer_.emit(document_.boundSymbol(op).symbol, call.pattern, effect::opaque, call.tensors, {},
               JointWriter::forwardOrigin(op));
}

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
  Instance instance{
      .op = op, .symbol = symbol, .pattern = pattern, .autocast = rules_.autocastIndex(), .writes = writes};
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

JointResult gradTransform(Document& document, const Computation& computation, const TransformOptions& options,
                          RuleCache& cache, const Progress& progress) {
  return JointBuilder(document, computation, options, cache, progress).build();
}

}  // namespace retrograd
