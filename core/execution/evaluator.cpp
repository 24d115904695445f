#include "core/execution/evaluator.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "core/execution/cuda_library.h"
#include "core/execution/device.h"
#include "core/execution/reproducible.h"
#include "core/trace/effects.h"
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

Evaluator::Evaluator(const Document& document, std::uint64_t seed, std::optional<c10::Device> standIn)
    : document_(document), standIn_(standIn), seed_(seed), generators_{seededState(seed), {}} {
  for (std::size_t i = 0; i < document.boundSymbolCount(); ++i)
    if (const auto original = document.boundSymbol(BoundSymbolId(static_cast<std::int64_t>(i))).replays) drawnFrom_.try_emplace(original);
}

void Evaluator::seed(std::uint64_t seed) {
  seed_ = seed;
  generators_ = {seededState(seed), {}};
}

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

/// A GPU that an operand or a result is on, else the CPU.
c10::Device Evaluator::deviceOf(BoundSymbolId op) const {
  if (standIn_) return *standIn_;
  for (const auto values : {document_.outputs(op), document_.operands(op)})
    for (auto id : values)
      if (id && document_.isTensor(id))
        if (const auto device = document_.meta(document_.value(id).meta).device; device.type == Device::Type::cuda) return toTorchDevice(device);
  return c10::kCPU;
}

/// What goes wrong on a GPU is often told tersely, so all that is known of the op goes with it.
Error Evaluator::failed(BoundSymbolId op, const std::string& reason) const {
  const auto device = deviceOf(op);
  if (!device.is_cuda()) return {ErrorCode::execution, reason, document_.opName(op)};
  const auto& bound = document_.boundSymbol(op);
  std::string message = "on " + device.str() + ": " + reason + "\n  op #" + std::to_string(op.index) + ", " + document_.symbol(bound.symbol).schema;
  if (bound.module) message += "\n  in module " + std::string(document_.text(bound.module));
  if (bound.source && !document_.source(bound.source).empty()) {
    const auto& frame = document_.source(bound.source).back();
    message += "\n  at " + frame.file + ":" + std::to_string(frame.line);
  }
  if (!synchronous_) message += "\n  a GPU tells of failures late: an earlier op may have caused it, which a run with --synchronous would name";
  return {ErrorCode::execution, message, document_.opName(op)};
}

bool Evaluator::draws(BoundSymbolId op) const { return document_.boundSymbol(op).effects & effect::random; }

void Evaluator::copyBorrowed(BoundSymbolId op, torch::jit::Stack& stack) {
  const auto& bound = document_.boundSymbol(op);
  const auto& symbol = document_.symbol(bound.symbol);
  const auto& pattern = document_.pattern(bound.pattern);
  for (auto position : writtenArguments(symbol, pattern.arguments)) {
    const auto& argument = pattern.arguments[position];
    if (argument.kind != Argument::Kind::operand || !stack[position].isTensor()) continue;
    const auto id = document_.operands(op)[static_cast<std::size_t>(argument.integer)];
    const auto storage = document_.value(id).storage;
    if (!storage || !document_.storage(storage).external) continue;
    stack[position] = copyStrided(stack[position].toTensor());
    if (!symbol.arguments[position].isWrite) bind(id, stack[position]);
  }
}

void Evaluator::run(BoundSymbolId op) {
  const auto& bound = document_.boundSymbol(op);
  const auto operands = document_.operands(op);
  try {
    auto stack = prepared(bound).arguments([&](std::size_t hole) -> c10::IValue {
      const auto id = operands[hole];
      if (!has(id)) throw Error(ErrorCode::internal, "operand " + document_.displayName(id) + " is not there");
      return values_[static_cast<std::size_t>(id.index)];
    }, standIn_);
    copyBorrowed(op, stack);
    const auto device = deviceOf(op);
    {
      const ProfilerRange range(device.is_cuda() ? document_.opName(op) : std::string());
      call(op, stack);
    }
    if (synchronous_) synchronise(toDevice(device));
    const auto outputs = document_.outputs(op);
    const auto results = flatten(stack);
    for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i)
      if (outputs[i]) bind(outputs[i], results[i]);
  } catch (const c10::Error& e) {
    throw failed(op, e.what_without_backtrace());
  } catch (const Error& e) {
    throw e.at(document_.opName(op));
  } catch (const std::exception& e) {  // kernels throw others, too
    throw failed(op, messageOf(e));
  }
}

void Evaluator::call(BoundSymbolId op, torch::jit::Stack& stack) {
  const auto& bound = document_.boundSymbol(op);
  // Some kernels read the grad mode (mkldnn_rnn_layer keeps its workspace only then); below autograd nothing is recorded.
  const bool asForward = bound.origin.role == Role::forward || bound.origin.role == Role::recompute;
  at::AutoGradMode gradMode(asForward && bound.gradMode);
  at::AutoDispatchBelowADInplaceOrView belowAutograd;
  const DeterministicScope deterministic;
  const auto& handle = prepared(bound).op();
  if (!draws(op)) {
    handle.callBoxed(stack);
    return;
  }
  draw(op, [&] { handle.callBoxed(stack); });
}

/// A draw goes on from the session's generator; a replay starts where its original did and leaves the session's generator alone.
void Evaluator::draw(BoundSymbolId op, const std::function<void()>& body) {
  const auto device = deviceOf(op);
  auto& generator = device.is_cuda() ? generators_.gpu : generators_.cpu;
  if (!generator.defined()) generator = seededState(seed_, device);
  KeepGenerator keep(device);
  if (const auto original = document_.boundSymbol(op).replays) {
    const auto state = drawnFrom_.find(original);
    if (state == drawnFrom_.end() || !state->second.defined())
      throw Error(ErrorCode::internal, "the draw it repeats, of op #" + std::to_string(original.index) + ", has not run");
    setGeneratorState(state->second, device);
    return body();
  }
  if (const auto replayed = drawnFrom_.find(op); replayed != drawnFrom_.end()) replayed->second = generator;
  setGeneratorState(generator, device);
  body();
  generator = generatorState(device);
}

Concretiser::Concretiser(const Document& document, std::uint64_t seed, std::vector<std::pair<ValueId, c10::IValue>> bindings,
                         std::function<at::Tensor(ValueId)> cotangent, std::optional<c10::Device> standIn)
    : evaluator_(document, seed, standIn), cotangent_(std::move(cotangent)) {
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

void Concretiser::addConstant(ValueId id, const TensorData& data) { evaluator_.bind(id, borrowTensor(data)); }

void Concretiser::bindOperands(const Document& document, BoundSymbolId op) {
  for (auto operand : document.operands(op))
    if (!evaluator_.has(operand) && document.value(operand).kind == ValueKind::cotangent) evaluator_.bind(operand, cotangent_(operand));
}

}  // namespace retrograd
