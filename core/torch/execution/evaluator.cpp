#include "core/torch/execution/evaluator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/out_of_memory.h"
#include "core/base/user_choice.h"
#include "core/formats/files/deferred_check.h"
#include "core/split/op_cost.h"
#include "core/torch/execution/as_recorded.h"
#include "core/torch/execution/determinism.h"
#include "core/torch/execution/device.h"
#include "core/torch/tracing/generator.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// To wake sleeping threads takes 60 to 150 microseconds, so two cores take as long as one for what one core does in
/// 0.3 to 0.5 milliseconds: a product of matrices of 256 x 256, a convolution of 64 channels, a sum of two tensors of a
/// million elements (measured on two cores; see docs/performance.md).
constexpr std::int64_t costWorthThreads = 10'000'000;

/// A copy with the same sizes, strides and offset in memory of its own: kernels and later views depend on them.
at::Tensor copyStrided(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || tensor.is_conj() || tensor.is_neg()) return tensor.clone();
  const auto memory = static_cast<std::int64_t>(
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(), tensor.storage_offset()) /
      tensor.itemsize());
  auto copy =
      at::empty({memory}, tensor.options()).as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  copy.copy_(tensor);
  return copy;
}

bool profilerListens() {
  static const bool listens = [] {
    const char *tool = std::getenv("NVTX_INJECTION64_PATH"), *wanted = std::getenv("RETROGRAD_NVTX");
    return (tool && *tool) || (wanted && std::string_view(wanted) == "1");
  }();
  return listens;
}

/// Names the op that runs to a tool such as Nsight Systems, by a range of NVTX, where that was asked for: the tool
/// started this program (it sets NVTX_INJECTION64_PATH), or RETROGRAD_NVTX is 1. Nothing otherwise. LibTorch's CUDA
/// half makes the ranges.
class ProfilerRange {
 public:
  ProfilerRange(bool onGpu, const Document& document, BoundSymbolId op) : open_(onGpu && profilerListens()) {
    if (open_) torch::profiler::impl::cudaStubs()->rangePush(document.opName(op).c_str());
  }
  ~ProfilerRange() {
    if (open_) torch::profiler::impl::cudaStubs()->rangePop();
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  const bool open_;
};

}  // namespace

const void* hostMemoryOf(const at::Tensor& tensor) {
  const bool isPlain = tensor.defined() && tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.has_storage();
  return isPlain ? tensor.storage().data() : nullptr;
}

Evaluator::Evaluator(const Document& document, std::uint64_t seed, std::optional<c10::Device> standIn)
    : document_(document), standIn_(standIn), seed_(seed), generators_{seededState(seed), {}} {
  for (const auto op : document.boundSymbolIds())
    if (const auto original = document.boundSymbol(op).replays) drawnFrom_.try_emplace(original);
}

void Evaluator::seed(std::uint64_t seed) {
  seed_ = seed;
  generators_ = {seededState(seed), {}};
}

void Evaluator::bind(ValueId id, c10::IValue value) {
  if (!values_.contains(id)) values_.resize(std::max<std::size_t>(document_.valueCount(), id.index + 1));
  if (value.isTensor()) files_.add(hostMemoryOf(value.toTensor()));
  values_[id] = std::move(value);
}

void Evaluator::releaseOwn(std::span<const ValueId> values) {
  for (const auto id : values) {
    const auto storage = document_.value(id).storage;
    if (has(id) && !(storage && document_.storage(storage).external)) release(id);
  }
}

at::Tensor Evaluator::tensor(ValueId id) const {
  if (const auto opaque = leftOut_ ? leftOut_->reason(id) : BoundSymbolId())
    throw Error(ErrorCode::execution,
                "it depends on the opaque op " + document_.opName(opaque) +
                    ", which does not run; fill in its result (" + nameOf(UserChoice::fill) + ")",
                document_.displayName(id));
  if (!hasTensor(id)) throw Error(ErrorCode::internal, "the value is not there", document_.displayName(id));
  const auto& tensor = values_[id].toTensor();
  if (anyUnverified()) requireVerified(hostMemoryOf(tensor));
  return tensor;
}

const PreparedCall& Evaluator::prepared(const BoundSymbol& bound) {
  const auto key =
      static_cast<std::uint64_t>(bound.symbol.index) << 32 | static_cast<std::uint32_t>(bound.pattern.index);
  auto& call = prepared_[key];
  if (!call)
    call = std::make_unique<PreparedCall>(requireOperator(document_.symbol(bound.symbol).name),
                                          document_.pattern(bound.pattern));
  return *call;
}

/// A GPU that an operand or a result is on, else the CPU.
c10::Device Evaluator::deviceOf(BoundSymbolId op) const {
  if (standIn_) return *standIn_;
  for (const auto values : {document_.outputs(op), document_.operands(op)})
    for (auto id : values)
      if (id && document_.isTensor(id))
        if (const auto device = document_.meta(id).device; device.type == Device::Type::cuda)
          return toTorchDevice(device);
  return c10::kCPU;
}

/// Errors of a GPU are often terse, so all that is known of the op goes with them.
Error Evaluator::failed(BoundSymbolId op, const std::string& reason) const {
  const auto device = deviceOf(op);
  if (!device.is_cuda()) return {ErrorCode::execution, reason, document_.opName(op)};
  const auto& bound = document_.boundSymbol(op);
  std::string message = "on " + device.str() + ": " + reason + "\n  op #" + std::to_string(op.index) + ", " +
                        document_.symbol(bound.symbol).schema;
  if (bound.module) message += "\n  in module " + std::string(document_.text(bound.module));
  if (bound.source && !document_.source(bound.source).empty()) {
    const auto& frame = document_.source(bound.source).back();
    message += "\n  at " + frame.file + ":" + std::to_string(frame.line);
  }
  if (!synchronous_)
    message += "\n  a GPU reports failures late: an earlier op may have caused this one; a run with " +
               nameOf(UserChoice::synchronous) + " names it";
  return {ErrorCode::execution, message, document_.opName(op)};
}

bool Evaluator::draws(BoundSymbolId op) const { return document_.boundSymbol(op).effects & effect::random; }

void Evaluator::setDrawn(BoundSymbolId draw, const Generators& before) {
  const auto replayed = drawnFrom_.find(draw);
  if (replayed == drawnFrom_.end()) return;
  const auto device = deviceOf(draw);
  const auto& state = device.is_cuda() ? before.gpu : before.cpu;
  replayed->second = state.defined() ? state : seededState(seed_, device);
}

void Evaluator::copyBorrowed(BoundSymbolId op, torch::jit::Stack& stack) {
  const auto& bound = document_.boundSymbol(op);
  const auto& symbol = document_.symbol(bound.symbol);
  const auto& pattern = document_.pattern(bound.pattern);
  for (auto position : writtenArguments(symbol, pattern.arguments)) {
    const auto& argument = pattern.arguments[position];
    if (argument.kind != Argument::Kind::operand || !stack[position].isTensor()) continue;
    const auto id = document_.operands(op)[argument.integer];
    const auto storage = document_.value(id).storage;
    if (!storage || !document_.storage(storage).external) continue;
    stack[position] = copyStrided(stack[position].toTensor());
    if (!symbol.arguments[position].isWrite) bind(id, stack[position]);
  }
}

void Evaluator::bindFilled(BoundSymbolId op) {
  for (auto output : document_.outputs(op)) {
    const auto filled = leftOut_->filled.find(output);
    if (filled == leftOut_->filled.end()) continue;
    const auto device = standIn_.value_or(toTorchDevice(document_.meta(output).device));
    bind(output, copyStrided(borrowTensor(filled->second)).to(device));  // ops may write to it
  }
}

/// Of an op that nobody can run: its results and what it wrote are the recorded ones.
void Evaluator::bindRecorded(const StepRecording& recording, BoundSymbolId op) {
  try {
    const auto held = [this](ValueId id) { return tensorOrNone(id); };
    for (auto& [id, tensor] : recordedResults(recording, document_, op, held)) bind(id, std::move(tensor));
  } catch (const c10::Error& e) {
    throw failed(op, e.what_without_backtrace());
  } catch (const Error& e) {
    throw e.at(document_.opName(op));
  }
}

void Evaluator::run(BoundSymbolId op) {
  if (leftOut_ && leftOut_->isLeftOut(op)) return bindFilled(op);
  const auto* recording = leftOut_ ? leftOut_->recording.get() : nullptr;
  if (recording && !runsAsRecorded(*recording, op)) return bindRecorded(*recording, op);
  const auto& bound = document_.boundSymbol(op);
  const auto operands = document_.operands(op);
  try {
    auto stack = prepared(bound).arguments(
        [&](std::size_t hole) -> c10::IValue {
          const auto id = operands[hole];
          if (!has(id)) throw Error(ErrorCode::internal, "operand " + document_.displayName(id) + " is not there");
          if (anyUnverified() && values_[id].isTensor()) requireVerified(hostMemoryOf(values_[id].toTensor()));
          return values_[id];
        },
        standIn_);
    copyBorrowed(op, stack);
    const auto device = deviceOf(op);
    {
      const ProfilerRange range(device.is_cuda(), document_, op);
      call(op, stack);
    }
    if (synchronous_) synchronise(toDevice(device));
    files_.requireUnchanged();
    const auto outputs = document_.outputs(op);
    const auto results = flatten(stack);
    for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i)
      if (outputs[i]) bind(outputs[i], results[i]);
  } catch (const c10::OutOfMemoryError& e) {  // a GPU's
    throw OutOfMemory(e.what_without_backtrace(), document_.opName(op));
  } catch (const std::bad_alloc& e) {
    throw OutOfMemory(messageOf(e), document_.opName(op));
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
  // Some kernels read the grad mode (mkldnn_rnn_layer keeps its workspace only then); below autograd nothing is
  // recorded.
  const auto* recording = leftOut_ ? leftOut_->recording.get() : nullptr;
  const bool asForward = recording || bound.origin.role == Role::forward || bound.origin.role == Role::recompute;
  at::AutoGradMode gradMode(asForward && bound.gradMode);
  at::AutoDispatchBelowADInplaceOrView belowAutograd;
  const DeterministicScope deterministic(recording ? retrograd::determinismOf(*recording) : determinismOf(op));
  const ThreadScope threads(recording     ? static_cast<int>(recording->settings.threads)
                            : isSmall(op) ? RunThreads::forSmallWork()
                                          : RunThreads::forLargeWork());
  const auto& handle = prepared(bound).op();
  if (!draws(op)) {
    handle.callBoxed(stack);
    return;
  }
  draw(op, [&] { handle.callBoxed(stack); });
}

/// The estimate is of the traces, not of the moment, so that a step that runs again splits its sums in the same way.
bool Evaluator::isSmall(BoundSymbolId op) {
  if (!sizes_.contains(op)) sizes_.resize(std::max<std::size_t>(document_.boundSymbolCount(), op.index + 1));
  auto& size = sizes_[op];
  if (size == Size::unknown) size = opCost(document_, op) < costWorthThreads ? Size::small : Size::large;
  return size == Size::small;
}

DeterministicScope::Mode Evaluator::determinismOf(BoundSymbolId op) {
  using Mode = DeterministicScope::Mode;
  if (!deviceOf(op).is_cuda()) return Mode::on;
  if (!modes_.contains(op)) modes_.resize(std::max<std::size_t>(document_.boundSymbolCount(), op.index + 1));
  auto& mode = modes_[op];
  if (!mode) {
    const auto choice = gpuKernelOf(document_, op);
    mode = !choice.usesMode() ? Mode::off : choice.kernel == GpuKernel::strict ? Mode::strict : Mode::on;
  }
  return *mode;
}

/// A draw goes on from the session's generator; a replay starts where its original did and leaves the session's
/// generator alone.
void Evaluator::draw(BoundSymbolId op, const std::function<void()>& body) {
  const auto device = deviceOf(op);
  auto& generator = device.is_cuda() ? generators_.gpu : generators_.cpu;
  if (!generator.defined()) generator = seededState(seed_, device);
  if (leftOut_ && leftOut_->recording)
    if (const auto state = recordedState(*leftOut_->recording, document_, op); state.defined()) generator = state;
  KeepGenerator keep(device);
  if (const auto original = document_.boundSymbol(op).replays) {
    const auto state = drawnFrom_.find(original);
    if (state == drawnFrom_.end() || !state->second.defined())
      throw Error(ErrorCode::internal,
                  "the draw it repeats, of op #" + std::to_string(original.index) + ", has not run");
    setGeneratorState(state->second, device);
    return body();
  }
  if (const auto replayed = drawnFrom_.find(op); replayed != drawnFrom_.end()) replayed->second = generator;
  setGeneratorState(generator, device);
  body();
  generator = generatorState(device);
}

}  // namespace retrograd
