#include "core/torch/grad/variant_source.h"

#include <ATen/autocast_mode.h>
#include <torch/headeronly/version.h>

#include "core/torch/tracing/op_table.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

std::uint8_t observedEffects(const Symbol& symbol, const RecordedOp& op, const std::vector<RecordedLocal>& locals) {
  auto effects =
      static_cast<std::uint8_t>(effectsOf(symbol, op.pattern.arguments) & ~(effect::view | effect::needsData));
  if (op.needsData) effects |= effect::needsData;
  for (auto output : op.outputs)
    for (auto operand : op.operands)
      if (output >= 0 && locals[output].storage >= 0 && locals[output].storage == locals[operand].storage &&
          !symbol.isMutable)
        effects |= effect::view;
  return effects;
}

}  // namespace

SymbolId internOperator(Document& document, const c10::OperatorHandle& op) {
  const auto name = symbolName(op);
  if (auto known = document.findSymbol(name)) return known;
  return document.internSymbol(describeOperator(op));
}

AutocastScope::AutocastScope(const AutocastState& state) : active_(state.active) {
  if (!active_) return;
  device_ = state.device == Device::Type::cuda ? at::kCUDA : at::kCPU;
  enabled_ = at::autocast::is_autocast_enabled(device_);
  dtype_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, state.enabled);
  if (state.dtype) at::autocast::set_autocast_dtype(device_, toScalarType(*state.dtype));
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!active_) return;
  // Casts of weights are cached per outermost scope; tags of this recorder must not leak into the next.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, enabled_);
  at::autocast::set_autocast_dtype(device_, dtype_);
}

RuleOp toRuleOp(Document& document, const Recorder& recorder, const RecordedOp& recorded) {
  RuleOp op;
  op.symbol = internOperator(document, recorded.op);
  op.pattern = document.internPattern(recorded.pattern);
  op.operands = recorded.operands;
  op.outputs = recorded.outputs;
  op.zeroTensor = recorded.zeroTensor;
  op.effects = observedEffects(document.symbol(op.symbol), recorded, recorder.locals());
  return op;
}

RuleLocal toRuleLocal(Document& document, const RecordedLocal& local) {
  if (local.storage < 0) return {};
  return {document.internMeta(local.meta), local.storage, local.storageBytes};
}

void markWhoseGradient(BackwardVariant& variant, std::size_t localCount) {
  std::vector<std::int16_t> least(localCount, -1);
  for (const auto& [operand, local] : variant.gradients) {
    auto& mark = least[local];
    if (mark < 0 || operand < mark) mark = static_cast<std::int16_t>(operand);
  }
  for (std::size_t k = variant.ops.size(); k-- > 0;) {
    auto& op = variant.ops[k];
    for (auto output : op.outputs) {
      if (output < 0) continue;
      const auto operand = least[output];
      if (operand >= 0 && (op.gradientOf < 0 || operand < op.gradientOf)) op.gradientOf = operand;
    }
    if (op.gradientOf < 0) continue;
    for (auto operand : op.operands) {
      auto& mark = least[operand];
      if (mark < 0 || op.gradientOf < mark) mark = op.gradientOf;
    }
  }
}

Error refused(const c10::Error& e, const std::string& op) {
  std::string reason = e.what_without_backtrace();
  if (auto end = reason.find('\n'); end != std::string::npos) reason.resize(end);
  return {ErrorCode::unsupportedOp, "LibTorch " TORCH_VERSION " refuses it: " + reason, "torch.ops." + op};
}

}  // namespace retrograd
