#include "core/torch/steps/op_derivatives.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include "core/base/error.h"
#include "core/torch/grad/derive.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/recorder.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

bool canFlow(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
}

}  // namespace

/// `withData`: derived on the real tensors, for this one time.
Rule* OpDerivatives::ruleFor(BoundSymbolId op, const OpTensors& tensors, const std::vector<char>& wanted,
                             bool withData) {
  const auto& bound = document_.boundSymbol(op);
  const std::string name = document_.symbol(bound.symbol).name;
  const CallPattern pattern = document_.pattern(bound.pattern);
  RuleRequest request;
  RuleCache::Key key{bound.symbol.index, bound.pattern.index};
  request.op = name;
  request.pattern = &pattern;
  bool strided = true;
  for (std::size_t i = 0; i < tensors.operands.size(); ++i) {
    const auto& tensor = tensors.operands[i];
    if (!tensor.defined()) throw Error(ErrorCode::execution, "an operand is not there", name);
    strided &= tensor.layout() == at::kStrided;
    request.operands.push_back(document_.internMeta(metaOf(tensor)));
    request.requiresGrad.push_back(wanted[i] && canFlow(tensor));
    if (hasTrait(name, OpTrait::readsMemory))
      request.memoryBytes.push_back(static_cast<std::int64_t>(tensor.storage().nbytes()));
    key.push_back(request.operands.back().index * 2 + (request.requiresGrad.back() ? 1 : 0));
    if (!request.memoryBytes.empty()) key.push_back(static_cast<std::int32_t>(request.memoryBytes.back()));
  }
  if (!withData && strided) {
    if (auto* found = rules_.find(key)) return found;
    try {
      return rules_.insert(key, deriveRule(document_, request));
    } catch (const NeedsData&) {
    }
  }
  request.real = tensors.operands;
  request.runReal = true;
  return rules_.keep(deriveRule(document_, request));
}

OpDerivatives::Prepared OpDerivatives::prepare(BoundSymbolId op, const OpTensors& tensors,
                                               const std::vector<char>& wanted,
                                               const std::vector<at::Tensor>& cotangents) {
  const auto variantOf = [&](Rule& rule) -> const BackwardVariant* {
    if (!rule.anyRequiresGrad) return nullptr;
    std::vector<MetaId> metas(rule.outputs.size());
    bool any = false;
    for (std::size_t i = 0; i < metas.size() && i < cotangents.size(); ++i) {
      if (!cotangents[i].defined() || !rule.outputRequiresGrad[i]) continue;
      metas[i] = document_.internMeta(metaOf(cotangents[i]));
      any = true;
    }
    if (!any) return nullptr;
    auto real = cotangents;
    real.resize(metas.size());
    return &backwardVariant(document_, rule, metas, real);
  };
  try {
    auto* rule = ruleFor(op, tensors, wanted, false);
    return {rule, variantOf(*rule)};
  } catch (const NeedsData&) {
  } catch (const Error&) {  // a sparse gradient, or data that the formula reads without asking
  }
  auto* rule = ruleFor(op, tensors, wanted, true);
  return {rule, variantOf(*rule)};
}

void OpDerivatives::runOp(const RuleOp& op, Locals& locals) const {
  const auto& symbol = document_.symbol(op.symbol);
  if (op.effects & effect::random)
    throw Error(ErrorCode::execution, "its derivative draws random numbers", symbol.name);
  const PreparedCall call(requireOperator(symbol.name), document_.pattern(op.pattern));
  auto stack = call.arguments([&](std::size_t hole) { return locals[op.operands[hole]]; });
  call.op().callBoxed(stack);
  const auto results = flatten(stack);
  for (std::size_t i = 0; i < op.outputs.size() && i < results.size(); ++i)
    if (op.outputs[i] >= 0) locals[op.outputs[i]] = results[i];
}

/// The values of the op itself: what it read, what it made as it was recorded, and what lies between where the backward
/// reads that.
void OpDerivatives::bindForward(const Rule& rule, const BackwardVariant& variant, const OpTensors& tensors,
                                Locals& locals) {
  for (std::size_t i = 0; i < tensors.operands.size(); ++i) locals[i] = tensors.operands[i];
  for (const auto& [local, data] : rule.constants) locals[local] = borrowTensor(data);
  for (std::size_t i = 0; i < rule.outputs.size() && i < tensors.outputs.size(); ++i)
    if (rule.outputs[i] >= rule.operandCount && tensors.outputs[i].defined())
      locals[rule.outputs[i]] = tensors.outputs[i];
  const auto isMissing = [&](std::int32_t local) {
    return std::cmp_less(local, rule.locals.size()) && locals[local].isNone();
  };
  bool lacks = false;
  for (const auto& op : variant.ops)
    for (const auto operand : op.operands) lacks |= isMissing(operand);
  for (const auto& [operand, local] : variant.gradients) lacks |= isMissing(local);
  if (!lacks) return;
  for (const auto& op : rule.forward) {
    bool isThere = true;
    for (const auto output : op.outputs) isThere &= output < 0 || !isMissing(output);
    if (!isThere) runOp(op, locals);
  }
}

/// The argument that LibTorch says has no derivative; empty where it refuses for another reason.
static std::string argumentWithoutDerivative(std::string_view refusal) {
  constexpr std::string_view before = "is not differentiable with respect to argument '";
  const auto at = refusal.find(before);
  if (at == std::string_view::npos) return {};
  const auto rest = refusal.substr(at + before.size());
  return std::string(rest.substr(0, rest.find('\'')));
}

std::optional<OpDerivatives::Gradients> OpDerivatives::of(BoundSymbolId op, const OpTensors& tensors,
                                                          const std::vector<char>& wanted,
                                                          const std::vector<at::Tensor>& cotangents) {
  auto asked = wanted;
  for (;;) {
    auto found = derive(op, tensors, asked, cotangents);
    if (found) return found;
    const auto& symbol = document_.symbol(op);
    const int argument = symbol.argumentIndex(argumentWithoutDerivative(refusal_));
    const auto arguments = std::span(document_.pattern(document_.boundSymbol(op).pattern).arguments);
    bool isLess = false;
    if (argument >= 0 && std::cmp_less(argument, arguments.size()))
      forEachOperand(arguments[argument], [&](std::size_t hole) { isLess |= std::exchange(asked[hole], 0) != 0; });
    if (!isLess) return std::nullopt;
  }
}

std::optional<OpDerivatives::Gradients> OpDerivatives::derive(BoundSymbolId op, const OpTensors& tensors,
                                                              const std::vector<char>& wanted,
                                                              const std::vector<at::Tensor>& cotangents) {
  try {
    const auto [rule, variant] = prepare(op, tensors, wanted, cotangents);
    Gradients found;
    found.byOperand.resize(tensors.operands.size());
    if (!variant) return found;
    at::AutoGradMode gradMode(false);
    at::AutoDispatchBelowADInplaceOrView belowAutograd;
    Locals locals(rule->locals.size() + variant->locals.size());
    bindForward(*rule, *variant, tensors, locals);
    for (const auto& [local, data] : variant->constants) locals[local] = borrowTensor(data);
    for (std::size_t i = 0; i < variant->cotangents.size(); ++i)
      if (variant->cotangents[i] >= 0) locals[variant->cotangents[i]] = cotangents[i];
    for (const auto& ruleOp : variant->ops) runOp(ruleOp, locals);
    found.passes = variant->ops.empty();
    for (const auto& [operand, local] : variant->gradients) {
      auto& sum = found.byOperand[operand];
      const auto& value = locals[local];
      if (!value.isTensor() || !value.toTensor().defined()) continue;
      sum = sum.defined() ? sum + value.toTensor() : value.toTensor();
    }
    return found;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    refusal_ = error.what();
  } catch (const NeedsData& error) {
    refusal_ = error.what();
  } catch (const c10::Error& error) {
    refusal_ = error.what_without_backtrace();
  } catch (const std::exception& error) {  // of a library that a kernel calls, as oneDNN
    refusal_ = error.what();
  }
  return std::nullopt;
}

}  // namespace retrograd
