#pragma once
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "core/base/id_vector.h"
#include "core/formats/files/mapping_watch.h"
#include "core/torch/execution/reproducible.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/opaque.h"
#include "core/trace/trace.h"

namespace retrograd {

/// Runs bound symbols one by one on real values. Holds the value of each ValueId and a generator state of its own,
/// which is put in place around each op that draws, so that two evaluators do not disturb each other.
class Evaluator {
 public:
  /// Generators' states: the CPU's, and that of the GPU that the document's tensors are on, undefined where they are on
  /// the CPU.
  struct Generators {
    at::Tensor cpu, gpu;
  };

  /// `standIn`: run everything on this device, whatever the document's device literals say.
  Evaluator(const Document& document, std::uint64_t seed, std::optional<c10::Device> standIn = {});

  const Document& document() const { return document_; }
  void bind(ValueId id, c10::IValue value);
  void release(ValueId id) { values_[id] = c10::IValue(); }
  /// Lets go of these values, but for inputs and weights, whose memory is not the run's.
  void releaseOwn(std::span<const ValueId> values);
  bool has(ValueId id) const { return values_.contains(id) && !values_[id].isNone(); }
  const c10::IValue& value(ValueId id) const { return values_[id]; }
  bool hasTensor(ValueId id) const { return has(id) && values_[id].isTensor(); }
  /// Undefined where it has none.
  at::Tensor tensorOrNone(ValueId id) const { return hasTensor(id) ? values_[id].toTensor() : at::Tensor(); }
  at::Tensor tensor(ValueId id) const;

  /// Runs the op and binds its outputs. An op whose estimated cost does not repay the waking of threads runs on one.
  /// Borrowed memory (weights, inputs) is never written: the op gets a copy. The result is the copy; where it
  /// writes without returning (native_batch_norm's statistics), the operand itself becomes the copy. Throws
  /// Error(execution) naming the op, Error(badInput) where a file that operands lie in changed since it was mapped;
  /// nothing is bound then.
  void run(BoundSymbolId op);
  bool draws(BoundSymbolId op) const;

  /// The generator states that replays of draws start from, kept before each draw that some op of the document replays;
  /// what runs the backward apart from the forward takes them over.
  void takeDraws(const Evaluator& from) { drawnFrom_ = from.drawnFrom_; }
  /// The same for one draw, of which the states before it are known; nothing where no op replays it.
  void setDrawn(BoundSymbolId draw, const Generators& before);

  Generators generators() const { return generators_; }
  void setGenerators(const Generators& states) { generators_ = states; }
  void seed(std::uint64_t seed);

  /// Ops that do not run because of opaque ones; what a person filled in for these is bound in their place. Null: every
  /// op runs.
  void setLeftOut(std::shared_ptr<const LeftOut> left) { leftOut_ = std::move(left); }

  /// Wait after each op on a GPU until it is done there, so that an error is reported for the op that caused it, not
  /// of a later one.
  void setSynchronous(bool on) { synchronous_ = on; }

 private:
  void bindFilled(BoundSymbolId op);
  void bindRecorded(const StepRecording& recording, BoundSymbolId op);
  const PreparedCall& prepared(const BoundSymbol& bound);
  void copyBorrowed(BoundSymbolId op, torch::jit::Stack& stack);
  void call(BoundSymbolId op, torch::jit::Stack& stack);
  void draw(BoundSymbolId op, const std::function<void()>& body);
  bool isSmall(BoundSymbolId op);
  DeterministicScope::Mode determinismOf(BoundSymbolId op);
  c10::Device deviceOf(BoundSymbolId op) const;
  Error failed(BoundSymbolId op, const std::string& reason) const;

  const Document& document_;
  IdVector<ValueId, c10::IValue> values_;
  std::unordered_map<std::uint64_t, std::unique_ptr<PreparedCall>> prepared_;
  enum class Size : std::uint8_t { unknown, small, large };
  IdVector<BoundSymbolId, Size> sizes_;
  IdVector<BoundSymbolId, std::optional<DeterministicScope::Mode>> modes_;  // of ops on GPUs, as far as asked for
  std::shared_ptr<const LeftOut> leftOut_;
  FilesInUse files_;  // that bound tensors lie in
  const std::optional<c10::Device> standIn_;
  bool synchronous_ = false;
  std::uint64_t seed_;
  Generators generators_;
  std::unordered_map<BoundSymbolId, at::Tensor> drawnFrom_;  // draws that are replayed; undefined until they ran
};

/// Where a tensor's elements lie in the host's memory; null where they do not.
const void* hostMemoryOf(const at::Tensor& tensor);

}  // namespace retrograd
