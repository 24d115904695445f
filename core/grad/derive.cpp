#include "core/grad/derive.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>

#include "core/grad/autograd_walk.h"
#include "core/trace/effects.h"
#include "core/tracing/extra_derivatives.h"
#include "core/tracing/generator.h"
#include "core/tracing/op_table.h"
#include "core/tracing/recorder.h"

namespace retrograd {

using torch::autograd::Edge;

/// The op's autograd graph and the recorder that saw it come to be.
class Derivation {
 public:
  Derivation(Recorder::Mode mode, std::string op) : recorder(mode), name(std::move(op)) {}

  Recorder recorder;
  std::string name;
  std::vector<at::Tensor> inputs;
  std::vector<Edge> leaves;
  std::vector<at::Tensor> outputs;
  bool real = false;
};

void DerivationDeleter::operator()(Derivation* derivation) const { delete derivation; }

namespace {

/// Sets autocast as the region says and restores it.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state) : active_(state.active) {
    if (!active_) return;
    device_ = state.device == Device::Type::cuda ? at::kCUDA : at::kCPU;
    enabled_ = at::autocast::is_autocast_enabled(device_);
    dtype_ = at::autocast::get_autocast_dtype(device_);
    at::autocast::set_autocast_enabled(device_, state.enabled);
    if (state.dtype) at::autocast::set_autocast_dtype(device_, toScalarType(*state.dtype));
    at::autocast::increment_nesting();
  }
  ~AutocastScope() {
    if (!active_) return;
    // Casts of weights are cached per outermost scope; tags of this recorder must not leak into the next.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }

 private:
  bool active_;
  at::DeviceType device_ = at::kCPU;
  bool enabled_ = false;
  at::ScalarType dtype_ = at::kFloat;
};

SymbolId internOperator(Document& document, const c10::OperatorHandle& op) {
  const auto name = symbolName(op);
  if (auto known = document.findSymbol(name)) return known;
  return document.internSymbol(describeOperator(op));
}

RuleLocal toRuleLocal(Document& document, const RecordedLocal& local) {
  if (local.storage < 0) return {};
  return {document.internMeta(local.meta), local.storage, local.storageBytes};
}

/// As schema and literals say, and as the recorder saw: whether an output really shares memory, whether data really decided.
std::uint8_t observedEffects(const Symbol& symbol, const RecordedOp& op, const std::vector<RecordedLocal>& locals) {
  auto effects = static_cast<std::uint8_t>(effectsOf(symbol, op.pattern.arguments) & ~(effect::view | effect::needsData));
  if (op.needsData) effects |= effect::needsData;
  for (auto output : op.outputs)
    for (auto operand : op.operands)
      if (output >= 0 && locals[static_cast<std::size_t>(output)].storage >= 0 &&
          locals[static_cast<std::size_t>(output)].storage == locals[static_cast<std::size_t>(operand)].storage && !symbol.isMutable)
        effects |= effect::view;
  return effects;
}

std::vector<RuleOp> toRuleOps(Document& document, const Recorder& recorder, std::size_t begin) {
  std::vector<RuleOp> ops;
  for (std::size_t i = begin; i < recorder.ops().size(); ++i) {
    const auto& recorded = recorder.ops()[i];
    RuleOp op;
    op.symbol = internOperator(document, recorded.op);
    op.pattern = document.internPattern(recorded.pattern);
    op.operands = recorded.operands;
    op.outputs = recorded.outputs;
    op.effects = observedEffects(document.symbol(op.symbol), recorded, recorder.locals());
    ops.push_back(std::move(op));
  }
  return ops;
}

RuleConstants constantsFrom(const Recorder& recorder, std::size_t firstLocal) {
  RuleConstants constants;
  for (const auto& [local, tensor] : recorder.constants())
    if (static_cast<std::size_t>(local) >= firstLocal && !tensor.is_meta()) constants.emplace_back(local, copyOut(tensor));
  return constants;
}

/// Operands that the op writes, cloned on the stack; returns (hole, position) of each.
std::vector<std::pair<std::int32_t, std::size_t>> cloneWritten(const c10::OperatorHandle& op, const CallPattern& pattern, torch::jit::Stack& stack) {
  std::vector<std::pair<std::int32_t, std::size_t>> written;
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = arguments[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    if (stack[i].isTensorList()) throw Error(ErrorCode::unsupportedOp, "an op that writes to a list of tensors has no rule", symbolName(op));
    if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    stack[i] = at::clone(stack[i].toTensor());
    written.emplace_back(static_cast<std::int32_t>(pattern.arguments[i].integer), i);
  }
  return written;
}

Error refused(const c10::Error& e, const std::string& op) {
  std::string reason = e.what_without_backtrace();
  if (auto end = reason.find('\n'); end != std::string::npos) reason.resize(end);
  return {ErrorCode::unsupportedOp, "LibTorch refuses it: " + reason, "torch.ops." + op};
}

void addInputs(Document& document, const DeriveRequest& request, Derivation& derivation) {
  auto& recorder = derivation.recorder;
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    at::Tensor input;
    if (request.runReal) {
      input = recorder.addRealInput(request.real[i]);
    } else {
      input = recorder.addInput(document.meta(request.operands[i]));
      if (!request.real.empty()) recorder.setReal(static_cast<std::int32_t>(i), request.real[i]);
    }
    if (request.requiresGrad[i]) {
      input.requires_grad_(true);
      derivation.leaves.push_back(torch::autograd::impl::gradient_edge(input));
    } else {
      derivation.leaves.emplace_back();
    }
    derivation.inputs.push_back(input);
  }
}

void runForward(const DeriveRequest& request, Derivation& derivation, Rule& rule) {
  const auto op = requireOperator(request.op);
  const PreparedCall call(op, *request.pattern);
  AutocastScope autocast(request.autocast);
  at::AutoGradMode gradMode(request.gradMode);
  Interception interception(derivation.recorder);
  auto stack = call.arguments([&](std::size_t hole) { return c10::IValue(derivation.inputs[hole]); });
  const auto written = cloneWritten(op, *request.pattern, stack);
  std::vector<at::Tensor> clones;
  for (const auto& [hole, position] : written) clones.push_back(stack[position].toTensor());
  op.callBoxed(stack);
  for (const auto& value : flatten(stack)) {
    const bool isTensor = value.isTensor();
    const auto tensor = isTensor ? value.toTensor() : at::Tensor();
    const auto local = tensor.defined() ? derivation.recorder.localOf(tensor) : -1;
    const bool requiresGrad = tensor.defined() && tensor.requires_grad() && local >= rule.operandCount;
    rule.outputs.push_back(local);
    rule.numbers.push_back(isTensor ? std::nullopt : numberArgument(value));
    rule.outputRequiresGrad.push_back(requiresGrad);
    rule.anyRequiresGrad |= requiresGrad;
    derivation.outputs.push_back(tensor);
  }
  for (std::size_t i = 0; i < written.size(); ++i) rule.written.emplace_back(written[i].first, derivation.recorder.localOf(clones[i]));
}

/// For each op the least operand whose gradient it leads to, found by walking from the gradients back.
void markOperands(BackwardVariant& variant, std::size_t localCount) {
  std::vector<std::int16_t> least(localCount, -1);
  for (std::size_t i = variant.gradients.size(); i-- > 0;)
    if (variant.gradients[i] >= 0) least[static_cast<std::size_t>(variant.gradients[i])] = static_cast<std::int16_t>(i);
  for (std::size_t k = variant.ops.size(); k-- > 0;) {
    auto& op = variant.ops[k];
    for (auto output : op.outputs) {
      if (output < 0) continue;
      const auto operand = least[static_cast<std::size_t>(output)];
      if (operand >= 0 && (op.operand < 0 || operand < op.operand)) op.operand = operand;
    }
    if (op.operand < 0) continue;
    for (auto operand : op.operands) {
      auto& mark = least[static_cast<std::size_t>(operand)];
      if (mark < 0 || op.operand < mark) mark = op.operand;
    }
  }
}

BackwardVariant deriveBackward(Document& document, Rule& rule, const std::vector<MetaId>& cotangents, const std::vector<at::Tensor>& real) {
  auto& derivation = *rule.derivation;
  auto& recorder = derivation.recorder;
  const auto firstLocal = recorder.locals().size();
  const auto firstOp = recorder.ops().size();
  const auto firstDependent = recorder.dataDependent().size();
  std::vector<Edge> roots;
  std::vector<at::Tensor> seeds;
  BackwardVariant variant;
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    if (!cotangents[i]) {
      variant.cotangents.push_back(-1);
      continue;
    }
    const auto local = static_cast<std::int32_t>(recorder.locals().size());
    at::Tensor seed;
    if (derivation.real) {
      seed = recorder.addRealInput(real.at(i));
    } else {
      seed = recorder.addInput(document.meta(cotangents[i]));
      if (!real.empty() && real[i].defined()) recorder.setReal(local, real[i]);
    }
    variant.cotangents.push_back(local);
    roots.push_back(torch::autograd::impl::gradient_edge(derivation.outputs[i]));
    seeds.push_back(seed);
  }
  std::vector<at::Tensor> gradients;
  {
    KeepGenerator keep;
    Interception interception(recorder);
    gradients = walkBackward(roots, seeds, derivation.leaves);
    for (const auto& gradient : gradients) variant.gradients.push_back(gradient.defined() ? recorder.localOf(gradient) : -1);
  }
  variant.ops = toRuleOps(document, recorder, firstOp);
  // Locals between the rule's and this variant's belong to other variants; they keep their numbers and stay unused.
  for (std::size_t i = rule.locals.size(); i < recorder.locals().size(); ++i)
    variant.locals.push_back(i < firstLocal ? RuleLocal{{}, RuleLocal::foreign, 0} : toRuleLocal(document, recorder.locals()[i]));
  variant.constants = constantsFrom(recorder, firstLocal);
  variant.dataDependent.assign(recorder.dataDependent().begin() + static_cast<std::ptrdiff_t>(firstDependent), recorder.dataDependent().end());
  markOperands(variant, recorder.locals().size());
  return variant;
}

}  // namespace

std::unique_ptr<Rule> deriveRule(Document& document, const DeriveRequest& request) {
  registerExtraDerivatives();
  auto rule = std::make_unique<Rule>();
  rule->operandCount = static_cast<std::int32_t>(request.operands.size());
  rule->derivation.reset(new Derivation(request.runReal ? Recorder::Mode::real : Recorder::Mode::hollow, std::string(request.op)));
  rule->derivation->real = request.runReal;
  auto& recorder = rule->derivation->recorder;
  try {
    addInputs(document, request, *rule->derivation);
    KeepGenerator keep;
    runForward(request, *rule->derivation, *rule);
  } catch (const c10::Error& e) {
    throw refused(e, std::string(request.op));
  }
  rule->forward = toRuleOps(document, recorder, 0);
  for (const auto& local : recorder.locals()) rule->locals.push_back(toRuleLocal(document, local));
  rule->constants = constantsFrom(recorder, 0);
  rule->dataDependent = recorder.dataDependent();
  if (request.runReal) rule->dataDependent.push_back(std::string(request.op));
  return rule;
}

const BackwardVariant& backwardVariant(Document& document, Rule& rule, const std::vector<MetaId>& cotangents, const std::vector<at::Tensor>& real) {
  std::vector<std::int32_t> key;
  for (auto c : cotangents) key.push_back(c.index);
  if (auto it = rule.variants.find(key); it != rule.variants.end()) return it->second;
  try {
    return rule.variants.emplace(key, deriveBackward(document, rule, cotangents, real)).first->second;
  } catch (const c10::Error& e) {
    throw refused(e, rule.derivation->name);
  }
}

}  // namespace retrograd
