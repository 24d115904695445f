#include "core/execution/evaluator.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "core/tracing/generator.h"

namespace retrograd {
namespace {

/// A copy with the same strides: kernels may depend on them.
at::Tensor copyStrided(const at::Tensor& tensor) {
  if (!tensor.is_non_overlapping_and_dense()) return tensor.clone();
  auto copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
  copy.copy_(tensor);
  return copy;
}

}  // namespace

Evaluator::Evaluator(const Document& document, std::uint64_t seed) : document_(document), generator_(seededState(seed)) {}

void Evaluator::seed(std::uint64_t seed) { generator_ = seededState(seed); }

void Evaluator::bind(ValueId id, c10::IValue value) {
  const auto index = static_cast<std::size_t>(id.index);
  if (index >= values_.size()) values_.resize(std::max(document_.valueCount(), index + 1));
  values_[index] = std::move(value);
}

at::Tensor Evaluator::tensor(ValueId id) const {
  if (!has(id) || !values_[static_cast<std::size_t>(id.index)].isTensor())
    throw Error(ErrorCode::internal, "the value is not there", document_.displayName(id));
  return values_[static_cast<std::size_t>(id.index)].toTensor();
}

const PreparedCall& Evaluator::prepared(const BoundSymbol& bound) {
  const auto key = static_cast<std::uint64_t>(bound.symbol.index) << 32 | static_cast<std::uint32_t>(bound.pattern.index);
  auto& call = prepared_[key];
  if (!call) call = std::make_unique<PreparedCall>(requireOperator(document_.symbol(bound.symbol).name), document_.pattern(bound.pattern));
  return *call;
}

bool Evaluator::draws(BoundSymbolId op) const { return document_.boundSymbol(op).effects & effect::random; }

std::vector<ValueId> Evaluator::copyBorrowed(BoundSymbolId op) {
  std::vector<ValueId> copied;
  for (auto id : writtenBy(document_, op)) {
    const auto& value = document_.value(id);
    if (!value.storage || !document_.storage(value.storage).external || !has(id)) continue;
    bind(id, copyStrided(tensor(id)));
    copied.push_back(id);
  }
  return copied;
}

void Evaluator::run(BoundSymbolId op) {
  const auto& bound = document_.boundSymbol(op);
  const auto operands = document_.operands(op);
  try {
    copyBorrowed(op);
    auto stack = prepared(bound).arguments([&](std::size_t hole) -> c10::IValue {
      const auto id = operands[hole];
      if (!has(id)) throw Error(ErrorCode::internal, "operand " + document_.displayName(id) + " is not there");
      return values_[static_cast<std::size_t>(id.index)];
    });
    call(op, stack);
    const auto outputs = document_.outputs(op);
    const auto results = flatten(stack);
    for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i)
      if (outputs[i]) bind(outputs[i], results[i]);
  } catch (const c10::Error& e) {
    std::string reason = e.what_without_backtrace();
    throw Error(ErrorCode::execution, reason, document_.opName(op));
  } catch (const Error& e) {
    throw e.at(document_.opName(op));
  }
}

void Evaluator::call(BoundSymbolId op, torch::jit::Stack& stack) {
  const auto& bound = document_.boundSymbol(op);
  // Some kernels read the grad mode (mkldnn_rnn_layer keeps its workspace only then); below autograd nothing is recorded.
  at::AutoGradMode gradMode(bound.origin.role == Role::forward && bound.gradMode);
  at::AutoDispatchBelowADInplaceOrView belowAutograd;
  const auto& handle = prepared(bound).op();
  if (!draws(op)) {
    handle.callBoxed(stack);
    return;
  }
  KeepGenerator keep;
  setGeneratorState(generator_);
  handle.callBoxed(stack);
  generator_ = generatorState();
}

std::vector<ValueId> writtenBy(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto& symbol = document.symbol(bound.symbol);
  const auto& arguments = document.pattern(bound.pattern).arguments;
  const auto operands = document.operands(op);
  std::vector<ValueId> written;
  const auto add = [&](std::size_t position) {
    if (position < arguments.size()) forEachOperand(arguments[position], [&](std::size_t hole) { written.push_back(operands[hole]); });
  };
  for (std::size_t i = 0; i < symbol.arguments.size(); ++i)
    if (symbol.arguments[i].isWrite) add(i);
  // native_batch_norm(input, weight, bias, running_mean, running_var, training, ...) updates the running statistics in training,
  // which its schema does not say.
  if (symbol.name == "aten.native_batch_norm.default" && arguments.size() > 5 && arguments[5].integer != 0) {
    add(3);
    add(4);
  }
  return written;
}

Concretiser::Concretiser(const Document& document, std::uint64_t seed, std::vector<std::pair<ValueId, c10::IValue>> bindings,
                         std::function<at::Tensor(ValueId)> cotangent)
    : evaluator_(document, seed), cotangent_(std::move(cotangent)) {
  for (auto& [id, value] : bindings) evaluator_.bind(id, std::move(value));
}

at::Tensor Concretiser::value(const Document& document, const std::vector<BoundSymbolId>& emitted, ValueId value) {
  at::AutoGradMode noGrad(false);
  for (; done_ < emitted.size(); ++done_) {
    bindOperands(document, emitted[done_]);
    evaluator_.run(emitted[done_]);
  }
  if (!evaluator_.has(value) && document.value(value).kind == ValueKind::cotangent) evaluator_.bind(value, cotangent_(value));
  return evaluator_.tensor(value);
}

void Concretiser::bindOperands(const Document& document, BoundSymbolId op) {
  for (auto operand : document.operands(op))
    if (!evaluator_.has(operand) && document.value(operand).kind == ValueKind::cotangent) evaluator_.bind(operand, cotangent_(operand));
}

}  // namespace retrograd
