#pragma once
// Only .cpp files of tracing include this: it shows ATen's types.
#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/model/model_file.h"
#include "core/torch/tracing/interceptor.h"

namespace retrograd {

/// Records the ops that a running program calls, above autograd and on real tensors, as the computation of a ModelFile.
/// Tensors that no recorded op made and that were not declared as inputs become constants with the content they have
/// then.
class ComputationRecorder final : public OpHandler {
 public:
  /// A program that calls more ops than this is taken for one that does not end.
  static constexpr std::size_t maxOps = 1'000'000;

  struct Options {
    /// at::tensor() and its kin ask for memory by aten.empty and fill it with no op that could be seen: what such an op
    /// gives is then a constant from where it is first read.
    bool emptyIsLiteral = false;
    /// Ops of which place() says no module are in that of the first parameter or buffer they read.
    bool placeByTensors = false;
  };
  ComputationRecorder(ModelFile& file, Options options, const Progress& progress);

  /// Declares an input. `data` is its content before the program runs. Where `borrowed`, nobody may write to the
  /// tensor's memory: an op that would gets its own copy of it first.
  ValueId addInput(InputSpec spec, const at::Tensor& tensor, TensorData data, bool borrowed);
  /// A second tensor for the same value (a tied parameter).
  void addAlias(ValueId value, const at::Tensor& tensor) { remember(tensor, value); }
  /// An input that is not a tensor: its number is in the ops' literals.
  void addNumber(const std::string& name, Argument number);
  /// A tensor of the file that becomes a constant of this name and content once something reads it.
  void offerConstant(const std::string& name, const at::Tensor& tensor, TensorData data);

  /// Where the ops that follow are.
  void place(SourceStackId source, StringId module) { source_ = source, module_ = module; }
  StringId module() const { return module_; }

  /// Runs the op and records it. Ops without a tensor among their results only run. Throws Error(unsupportedOp,
  /// cancelled), c10::Error.
  void handle(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  bool knows(const at::Tensor& tensor) const { return find(tensor).valid(); }
  /// Whether a recorded op made what the tensor holds now.
  bool computed(const at::Tensor& tensor) const { return knows(tensor) && document_.value(find(tensor)).producer; }
  /// Names the value that `tensor` is, unless it has a name; made into a Python identifier that nothing else has.
  void name(const at::Tensor& tensor, std::string_view name);
  /// Notes that data decided something here, once for each place.
  void noteDependence(const std::string& op);
  /// The value `tensor` is now; a constant where it was not known.
  ValueId valueOf(const at::Tensor& tensor);

  /// `output` in the flattened order of the program's results: a tensor, a number or None.
  void addOutput(const c10::IValue& output, const std::string& path);
  void addMutation(OutputKind kind, const std::string& target, const at::Tensor& tensor);
  /// Puts what was recorded into the file's computation; `kind` and `name`: of what was traced.
  void finish(const std::string& kind, const std::string& name, double seconds);

 private:
  using WeakTensor =
      c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>;  // keeps an address from being used again
  struct Known {
    ValueId value;
    WeakTensor impl;
  };
  struct Memory {
    StorageId id;
    c10::weak_intrusive_ptr<c10::StorageImpl> impl;  // likewise
    std::int32_t writes = 0;
    bool borrowed = false;
  };
  struct Offer {
    std::string name;
    TensorData data;
    WeakTensor impl;
  };
  struct Op {
    SymbolId symbol;
    bool isRecorded = false, readsData = false, isEmpty = false;
  };

  const Op& opOf(const c10::OperatorHandle& handle);
  ValueId find(const at::Tensor& tensor) const;
  void remember(const at::Tensor& tensor, ValueId value);
  Memory& memoryOf(const at::Tensor& tensor, ValueId first, bool external);
  void prepareWrites(const Op& op, const std::vector<Argument>& arguments, const c10::IValue* values);
  void record(const Op& op, CallPattern pattern, std::span<const ValueId> operands, torch::jit::Stack& results);
  c10::IValue addResults(const c10::IValue& result, bool mutates, std::vector<ValueId>& outputs);
  at::Tensor addResult(const at::Tensor& tensor, bool mutates, std::vector<ValueId>& outputs);
  ValueId addConstant(const at::Tensor& tensor);
  void nameOutputs();
  StringId moduleFor(std::span<const ValueId> operands) const;

  ModelFile& file_;
  Document& document_;
  Options options_;
  const Progress& progress_;
  SourceStackId source_;
  StringId module_;
  std::unordered_map<std::string, Op> ops_;  // by name and overload
  std::unordered_map<const at::TensorImpl*, Known> known_;
  std::unordered_map<const c10::StorageImpl*, Memory> memory_;
  std::unordered_map<const at::TensorImpl*, Offer> offers_;
  std::unordered_map<ValueId, StringId> owners_;  // of parameters and buffers: the module they are registered in
  std::unordered_set<std::string> dependences_;
};

/// The tensor as data of its own: a copy of all the memory under it, so that what is written to that later does not
/// show.
TensorData snapshot(const at::Tensor& tensor);

}  // namespace retrograd
