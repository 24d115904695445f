#include "core/torch/grad/derive.h"

#include <ATen/Context.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/new_empty_strided.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/user_choice.h"
#include "core/torch/grad/autograd_walk.h"
#include "core/torch/grad/variant_source.h"
#include "core/torch/tracing/extra_derivatives.h"
#include "core/torch/tracing/generator.h"
#include "core/trace/effects.h"

namespace retrograd {

using torch::autograd::Edge;

void VariantSourceDeleter::operator()(VariantSource* source) const { delete source; }

namespace {

/// The GPU that operands are said to be on while their real tensors are on the CPU, because there is none here.
std::optional<c10::Device> claimedBeside(const Document& document, const RuleRequest& request) {
  for (std::size_t i = 0; i < request.real.size(); ++i) {
    const auto device = document.meta(request.operands[i]).device;
    if (device.type == Device::Type::cuda && request.real[i].is_cpu()) return toTorchDevice(device);
  }
  return std::nullopt;
}

/// While it lives and `op` is an LSTM, a GRU or a plain RNN, LibTorch takes its own cells on a GPU instead of cuDNN.
/// Before it calls cuDNN it looks whether the weights are one block of memory, by `set_` of a storage, which no trace
/// can hold; and one call for all steps would say nothing of any of them.
class OwnRnnCells {
 public:
  explicit OwnRnnCells(std::string_view op) : cudnn_(at::globalContext().userEnabledCuDNN()) {
    static constexpr std::array<std::string_view, 4> names{"aten.lstm.", "aten.gru.", "aten.rnn_tanh.",
                                                           "aten.rnn_relu."};
    const bool isRecurrent = std::ranges::any_of(names, [&](std::string_view name) { return op.starts_with(name); });
    if (isRecurrent) at::globalContext().setUserEnabledCuDNN(false);
  }
  ~OwnRnnCells() { at::globalContext().setUserEnabledCuDNN(cudnn_); }
  OwnRnnCells(const OwnRnnCells&) = delete;
  OwnRnnCells& operator=(const OwnRnnCells&) = delete;

 private:
  const bool cudnn_;
};

/// The op's autograd graph, and the recorder that saw it being made.
class AutogradDerivation final : public VariantSource {
 public:
  AutogradDerivation(const Document& document, const RuleRequest& request)
      : VariantSource(std::string(request.op)),
        recorder(request.runReal ? Recorder::Mode::real : Recorder::Mode::hollow,
                 request.runReal ? claimedBeside(document, request) : std::nullopt),
        real(request.runReal),
        createGraph(request.createGraph) {}
  BackwardVariant backward(Document& document, Rule& rule, const std::vector<MetaId>& cotangents,
                           const std::vector<at::Tensor>& real) override;

  Recorder recorder;
  std::vector<at::Tensor> inputs;
  std::vector<Edge> leaves;
  std::vector<at::Tensor> outputs;
  const bool real, createGraph;
};

std::vector<RuleOp> toRuleOps(Document& document, const Recorder& recorder, std::size_t begin) {
  std::vector<RuleOp> ops;
  for (std::size_t i = begin; i < recorder.ops().size(); ++i)
    ops.push_back(toRuleOp(document, recorder, recorder.ops()[i]));
  return ops;
}

RuleConstants constantsFrom(const Recorder& recorder, std::size_t firstLocal) {
  RuleConstants constants;
  for (const auto& [local, tensor] : recorder.constants())
    if (std::cmp_greater_equal(local, firstLocal) && !tensor.is_meta()) constants.emplace_back(local, copyOut(tensor));
  return constants;
}

/// A copy to be written. What an op draws depends on how the memory is laid out, and a plain clone closes the gaps.
at::Tensor copyToWrite(const c10::OperatorHandle& op, const at::Tensor& tensor) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded) || tensor.is_non_overlapping_and_dense()) return at::clone(tensor);
  auto copy = tensor.new_empty_strided(tensor.sizes(), tensor.strides());
  copy.copy_(tensor);
  return copy;
}

/// Operands that the op writes, cloned on the stack if the mode says so; returns (hole, position) of each.
std::vector<std::pair<std::int32_t, std::size_t>> cloneWritten(Document& document, const c10::OperatorHandle& op,
                                                               const RuleRequest& request, torch::jit::Stack& stack) {
  std::vector<std::pair<std::int32_t, std::size_t>> written;
  const auto& arguments = op.schema().arguments();
  const auto& symbol = document.symbol(internOperator(document, op));
  for (const auto i : writtenArguments(symbol, request.pattern->arguments)) {
    if (request.writes != WriteMode::cloneAll && (!arguments[i].alias_info() || !arguments[i].alias_info()->isWrite()))
      continue;
    if (stack[i].isTensorList())
      throw Error(ErrorCode::unsupportedOp, "an op that writes to a list of tensors has no rule", symbolName(op));
    if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    if (request.writes != WriteMode::inPlace) stack[i] = copyToWrite(op, stack[i].toTensor());
    written.emplace_back(static_cast<std::int32_t>(request.pattern->arguments[i].integer), i);
  }
  return written;
}

/// Refuses an op that writes to an operand in a way that neither its schema nor the table of silent writers says:
/// nobody would learn of the write.
void refuseUndeclaredWrites(const Document& document, const Rule& rule, const std::string& name) {
  std::set<std::int32_t> declared;
  for (const auto& [hole, local] : rule.written) declared.insert(rule.locals[hole].storage);
  for (const auto& op : rule.forward) {
    const auto& symbol = document.symbol(op.symbol);
    if (!symbol.isMutable) continue;
    const auto& arguments = document.pattern(op.pattern).arguments;
    for (auto i : writtenArguments(symbol, arguments)) {
      if (arguments[i].kind != Argument::Kind::operand) continue;
      const auto storage = rule.locals[op.operands[arguments[i].integer]].storage;
      for (std::int32_t operand = 0; operand < rule.operandCount; ++operand)
        if (storage >= 0 && rule.locals[operand].storage == storage && !declared.contains(storage))
          throw Error(ErrorCode::unsupportedOp, "it writes to an operand, which its schema does not say",
                      "torch.ops." + name);
    }
  }
}

/// Whether LibTorch knows how to differentiate the op. For its own ops it always answers, if only with an error when
/// the time has come; for an op of a library that brings no formula it would return no gradient without a word.
bool hasDerivative(const c10::OperatorHandle& op) {
  static const c10::DispatchKeySet autograd =
      c10::autograd_dispatch_keyset | c10::DispatchKeySet(c10::DispatchKey::Autograd);
  return op.operator_name().name.starts_with("aten::") ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::Autograd) || op.hasKernelForAnyDispatchKey(autograd);
}

void addInputs(Document& document, const RuleRequest& request, AutogradDerivation& derivation) {
  auto& recorder = derivation.recorder;
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    at::Tensor input;
    if (request.runReal) {
      input = recorder.addRealInput(request.real[i]);
    } else {
      input = recorder.addInput(document.meta(request.operands[i]),
                                request.memoryBytes.empty() ? 0 : request.memoryBytes[i]);
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

/// An op without a derivative: its outputs still require a gradient, or the missing formula would go unnoticed.
void markNotDifferentiable(const RuleRequest& request, const AutogradDerivation& derivation, Rule& rule) {
  if (std::ranges::none_of(request.requiresGrad, [](char r) { return r; })) return;
  rule.noDerivative = true;
  for (std::size_t i = 0; i < derivation.outputs.size(); ++i) {
    const auto& output = derivation.outputs[i];
    rule.outputRequiresGrad[i] =
        output.defined() && (output.is_floating_point() || output.is_complex()) && rule.outputs[i] >= rule.operandCount;
    rule.anyRequiresGrad |= rule.outputRequiresGrad[i];
  }
}

void runForward(Document& document, const RuleRequest& request, AutogradDerivation& derivation, Rule& rule) {
  const auto op = requireOperator(request.op);
  const PreparedCall call(op, *request.pattern);
  AutocastScope autocast(request.autocast);
  at::AutoGradMode gradMode(request.gradMode);
  Interception interception(derivation.recorder);
  auto stack = call.arguments([&](std::size_t hole) { return c10::IValue(derivation.inputs[hole]); },
                              request.runReal ? derivation.recorder.literalDevice() : std::nullopt);
  const auto written = cloneWritten(document, op, request, stack);
  std::vector<at::Tensor> clones;
  for (const auto& [hole, position] : written) clones.push_back(stack[position].toTensor());
  {
    const OwnRnnCells ownCells(request.op);
    op.callBoxed(stack);
  }
  for (const auto& value : flatten(stack)) {
    const bool isTensor = value.isTensor();
    const auto tensor = isTensor ? value.toTensor() : at::Tensor();
    const auto local = tensor.defined() ? derivation.recorder.localOf(tensor) : -1;
    // A view made under no_grad says that it requires a gradient, and leads to nothing: eager PyTorch runs no
    // derivative behind it.
    const bool requiresGrad =
        tensor.defined() && tensor.requires_grad() && tensor.grad_fn() && local >= rule.operandCount;
    rule.outputs.push_back(local);
    rule.numbers.push_back(isTensor ? std::nullopt : numberArgument(value));
    rule.outputRequiresGrad.push_back(requiresGrad);
    rule.anyRequiresGrad |= requiresGrad;
    derivation.outputs.push_back(tensor);
  }
  if (request.gradMode && !hasDerivative(op)) markNotDifferentiable(request, derivation, rule);
  for (std::size_t i = 0; i < written.size(); ++i)
    rule.written.emplace_back(written[i].first, derivation.recorder.localOf(clones[i]));
}

BackwardVariant AutogradDerivation::backward(Document& document, Rule& rule, const std::vector<MetaId>& cotangents,
                                             const std::vector<at::Tensor>& data) {
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
    if (real) {
      seed = recorder.addRealInput(data.at(i));
    } else {
      seed = recorder.addInput(document.meta(cotangents[i]));
      if (!data.empty() && data[i].defined()) recorder.setReal(local, data[i]);
    }
    variant.cotangents.push_back(local);
    roots.push_back(torch::autograd::impl::gradient_edge(outputs[i]));
    seeds.push_back(seed);
  }
  std::vector<at::Tensor> gradients;
  {
    KeepGenerator keep;
    Interception interception(recorder);
    gradients = walkBackward(roots, seeds, leaves, createGraph);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined())
        variant.gradients.emplace_back(static_cast<std::int32_t>(i), recorder.localOf(gradients[i]));
  }
  variant.ops = toRuleOps(document, recorder, firstOp);
  // Locals between the rule's and this variant's belong to other variants; they keep their numbers and stay unused.
  for (std::size_t i = rule.locals.size(); i < recorder.locals().size(); ++i)
    variant.locals.push_back(i < firstLocal ? RuleLocal{{}, RuleLocal::foreign, 0}
                                            : toRuleLocal(document, recorder.locals()[i]));
  variant.constants = constantsFrom(recorder, firstLocal);
  variant.dataDependent.assign(recorder.dataDependent().begin() + firstDependent, recorder.dataDependent().end());
  markWhoseGradient(variant, recorder.locals().size());
  return variant;
}

/// A decomposition, which argument says whether it computes vectors, and which of its results are these.
struct Decomposition {
  std::string_view name;
  std::size_t argument;
  std::array<std::size_t, 2> vectors;
};
constexpr std::array<Decomposition, 2> decompositions{
    {{"aten._linalg_svd.default", 2, {0, 2}}, {"aten._linalg_eigh.default", 2, {1, 1}}}};

bool isRead(const Rule& rule, std::int32_t local) {
  return std::ranges::find(rule.outputs, local) != rule.outputs.end() ||
         std::ranges::any_of(rule.forward, [&](const RuleOp& op) {
           return std::ranges::find(op.operands, local) != op.operands.end();
         });
}

void makeEmpty(Document& document, RuleLocal& local) {
  TensorMeta meta = document.meta(local.meta);
  meta.sizes = {0};
  meta.strides = {1};
  local.meta = document.internMeta(meta);
  local.storageBytes = 0;
}

/// linalg_svdvals, linalg_eigvalsh and what is made of them compute vectors where a gradient needs those, and take
/// another routine of LAPACK where none does, whose last bits differ. Recorded, they take the former always: PyTorch
/// asks whether a tensor is that of a subclass, which tracing looks like. Puts the latter where nothing reads the
/// vectors.
void leaveVectorsOut(Document& document, std::string_view op, Rule& rule) {
  if (rule.anyRequiresGrad) return;
  for (auto& inner : rule.forward) {
    const std::string name = document.symbol(inner.symbol).name;
    const auto known = std::ranges::find_if(decompositions, [&](const Decomposition& d) { return d.name == name; });
    if (known == decompositions.end() || name == op) continue;
    if (std::ranges::any_of(known->vectors, [&](std::size_t i) { return isRead(rule, inner.outputs[i]); })) continue;
    auto pattern = document.pattern(inner.pattern);
    while (pattern.arguments.size() <= known->argument) pattern.arguments.push_back(Argument::ofMissing());
    pattern.arguments[known->argument] = Argument::ofBool(false);
    inner.pattern = document.internPattern(pattern);
    for (auto i : known->vectors) makeEmpty(document, rule.locals[inner.outputs[i]]);
  }
}

/// What an op without any rule is refused with.
Error noRule(const std::string& name) {
  std::ostringstream schema;
  schema << requireOperator(name).schema();
  return {ErrorCode::unsupportedOp,
          "Failed to find a gradient transform for it: LibTorch " TORCH_VERSION " has no derivative for " +
              schema.str() + ", and neither a rule nor a decomposition into other ops is registered (see " +
              nameOf(UserChoice::library) + ")",
          "torch.ops." + name};
}

}  // namespace

std::unique_ptr<Rule> deriveRule(Document& document, const RuleRequest& request) {
  registerExtraDerivatives();
  if (auto registered = deriveRegistered(document, request)) return registered;
  auto rule = std::make_unique<Rule>();
  rule->operandCount = static_cast<std::int32_t>(request.operands.size());
  auto* derivation = new AutogradDerivation(document, request);
  rule->variantSource.reset(derivation);
  auto& recorder = derivation->recorder;
  try {
    addInputs(document, request, *derivation);
    KeepGenerator keep;
    runForward(document, request, *derivation, *rule);
  } catch (const c10::Error& e) {
    throw refused(e, std::string(request.op));
  }
  rule->forward = toRuleOps(document, recorder, 0);
  for (const auto& local : recorder.locals()) rule->locals.push_back(toRuleLocal(document, local));
  refuseUndeclaredWrites(document, *rule, std::string(request.op));
  leaveVectorsOut(document, request.op, *rule);
  rule->constants = constantsFrom(recorder, 0);
  rule->dataDependent = recorder.dataDependent();
  if (request.runReal) rule->dataDependent.push_back(std::string(request.op));
  return rule;
}

const BackwardVariant& backwardVariant(Document& document, Rule& rule, const std::vector<MetaId>& cotangents,
                                       const std::vector<at::Tensor>& real) {
  std::vector<std::int32_t> key;
  for (auto c : cotangents) key.push_back(c.index);
  if (auto it = rule.variants.find(key); it != rule.variants.end()) return it->second;
  if (rule.noDerivative) throw noRule(rule.variantSource->name);
  try {
    return rule.variants.emplace(key, rule.variantSource->backward(document, rule, cotangents, real)).first->second;
  } catch (const c10::Error& e) {
    throw refused(e, rule.variantSource->name);
  }
}

}  // namespace retrograd
