#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/hollow.h"
#include "core/torch/tracing/interceptor.h"
#include "core/trace/document.h"

namespace retrograd {

/// One dispatched ATen op: a pattern over local value numbers.
struct RecordedOp {
  c10::OperatorHandle op;
  CallPattern pattern;
  std::vector<std::int32_t> operands;  ///< locals
  std::vector<std::int32_t> outputs;   ///< locals; -1 undefined. A number output is a local without meta
  bool needsData = false;              ///< decided by real data
  bool zeroTensor = false;             ///< in eager PyTorch its result has no memory and is known to be zero
};

/// What the recorder knows of a local value.
struct RecordedLocal {
  TensorMeta meta;
  std::int32_t storage = -1;  ///< recorder's storage number; -1: no tensor
  std::int64_t storageBytes = 0;
  std::optional<Argument> number;  ///< a value that is not a tensor
};

/// Thrown when an op's result depends on data and none is at hand; the deriver then comes back with real tensors.
struct NeedsData : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Records every op dispatched on this thread as operations on locals, numbered densely from 0. In hollow mode tensors
/// have no data and kernels run on their meta twins; ops without a meta kernel run on zeros, or, where the result
/// depends on data, on real tensors that are computed on demand by replaying what was recorded. In real mode everything
/// simply runs. Tensors that claim CUDA may have real ones on the CPU behind them where there is no CUDA: device
/// literals are then replaced for the run, and what is recorded says CUDA.
class Recorder final : public OpHandler {
 public:
  enum class Mode { hollow, real };
  /// `claimed`: in real mode, the device that the CPU stands in for.
  explicit Recorder(Mode mode, std::optional<c10::Device> claimed = {});

  /// Makes `meta` known as the next local and returns its tensor (hollow), a leaf. `memoryBytes`: of the memory it lies
  /// in, where more than it needs.
  at::Tensor addInput(const TensorMeta& meta, std::int64_t memoryBytes = 0);
  /// Real data of local `id`, for ops whose result depends on data. In real mode: the next local itself, as a fresh
  /// leaf.
  at::Tensor addRealInput(const at::Tensor& tensor);
  void setReal(std::int32_t id, const at::Tensor& tensor) { real_[id] = tensor; }
  /// What device literals are replaced by for a run on real tensors; nullopt: they stay.
  std::optional<c10::Device> literalDevice() const;

  void handle(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  /// Local of a tensor, -1 when undefined; a tensor never seen becomes a constant.
  std::int32_t localOf(const at::Tensor& tensor);

  const std::vector<RecordedOp>& ops() const { return ops_; }
  const std::vector<RecordedLocal>& locals() const { return locals_; }
  /// Tensors that came from nowhere: literals inside a formula.
  const std::map<std::int32_t, at::Tensor>& constants() const { return constants_; }
  /// Names of ops whose result was decided by data.
  const std::vector<std::string>& dataDependent() const { return dataDependent_; }

 private:
  struct Call;
  std::int32_t newLocal(const at::Tensor& tensor);
  void describe(std::int32_t local, const at::Tensor& tensor);
  Argument encode(const c10::IValue& value, const c10::TypePtr& type, RecordedOp& record);
  bool handleInParts(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  void runHollow(Call& call);
  void runOnMeta(Call& call);
  void runOnZeros(Call& call);
  void runOnData(Call& call);
  void adoptResults(Call& call);
  at::Tensor adopt(Call& call, const at::Tensor& result);
  void recordOutputs(Call& call, torch::jit::Stack* stack);
  void replayUpTo(std::size_t end);
  void runReal(Call& call);
  void adoptFilled();
  c10::IValue realOperand(const RecordedOp& op, std::size_t hole);

  Mode mode_;
  std::optional<c10::Device> claimed_;  // hollow: the GPU that inputs claim
  std::uint64_t serial_;
  std::vector<RecordedOp> ops_;
  std::vector<RecordedLocal> locals_;
  std::map<std::int32_t, at::Tensor> constants_;
  std::map<std::int32_t, c10::IValue> real_;
  std::size_t replayed_ = 0;
  std::vector<at::Tensor> blank_;  // real mode: uninitialised tensors that no recorded op has written yet
  std::vector<std::string> dataDependent_;
  std::unordered_map<const c10::StorageImpl*, std::int32_t> storages_;
  std::vector<c10::Storage> keptStorages_;  // an address must not be used again while locals refer to it
};

}  // namespace retrograd
