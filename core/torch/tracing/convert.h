#pragma once
// Between our types and ATen's. Only .cpp files of tracing, grad, execution, debug and checking include this.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/function.h>

#include <functional>
#include <optional>
#include <vector>

#include "core/trace/document.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

at::ScalarType toScalarType(DType);
/// nullopt for what we have no name for (quantized types).
std::optional<DType> findDType(at::ScalarType);
/// The same; Error(unsupportedOp) where there is none.
DType toDType(at::ScalarType);
c10::Device toTorchDevice(const std::string& text);
c10::Device toTorchDevice(Device);
Device toDevice(c10::Device);

/// Meta of a strided tensor; of a sparse one only dtype, sizes and layout are filled.
TensorMeta metaOf(const at::Tensor&);
/// A tensor over the same bytes; the tensor keeps their owner alive. Nobody may write to it.
at::Tensor borrowTensor(const TensorData&);
/// The tensor's own storage, kept alive; of a strided tensor, also on a GPU.
TensorData keepTensor(const at::Tensor&);
/// A contiguous copy on the CPU without lazy conjugation or negation; sparse tensors become dense.
TensorData copyOut(const at::Tensor&);

/// Operator by our name ("aten.add.Tensor"), nullopt when LibTorch has none.
std::optional<c10::OperatorHandle> findOperator(std::string_view name);
/// The same; Error(unknownOp) when LibTorch has none.
c10::OperatorHandle requireOperator(std::string_view name);
std::string symbolName(const c10::OperatorHandle&);

/// Python's way with a number where a tensor is wanted: 0-dim and marked as wrapped, so that it does not promote
/// dtypes.
at::Tensor wrappedNumber(const Argument&);
/// Number as literal Argument; nullopt for what is none.
std::optional<Argument> numberArgument(const c10::IValue&);

/// The number behind a wrapped number tensor: it prints better than a tensor. nullopt for what is none.
std::optional<Argument> literalOf(const at::Tensor&);
/// An argument of a dispatched call as ours, by its schema type; `tensor` says what represents a defined tensor (a
/// hole, a literal). Throws Error(unsupportedOp) for what no trace can hold.
Argument encodeArgument(const c10::IValue& value, const c10::TypePtr& type,
                        const std::function<Argument(const at::Tensor&)>& tensor);

/// A call whose literals were converted once: filling the operands' holes is all that is left to do for each run.
class PreparedCall {
 public:
  using Lookup = std::function<c10::IValue(std::size_t hole)>;

  /// Throws Error(badInput) when a literal does not fit the schema.
  PreparedCall(const c10::OperatorHandle& op, const CallPattern& pattern);
  PreparedCall(const PreparedCall&) = delete;  // slots_ points into pattern_
  PreparedCall& operator=(const PreparedCall&) = delete;

  const c10::OperatorHandle& op() const { return op_; }
  /// The stack with all arguments in schema order; device literals are replaced by `device` where it is given.
  torch::jit::Stack arguments(const Lookup& operand, std::optional<c10::Device> device = {}) const;

 private:
  struct Slot {
    std::size_t position;
    c10::TypePtr type;
    const Argument* argument;  // of pattern_
  };
  c10::OperatorHandle op_;
  CallPattern pattern_;
  torch::jit::Stack prototype_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> devices_;
};

/// One argument as IValue of schema type `type`, holes filled by `operand`.
c10::IValue toIValue(const Argument& argument, const c10::TypePtr& type, const PreparedCall::Lookup& operand);

/// Flat outputs of a finished call: tensor lists are unrolled. Undefined tensors stay undefined.
std::vector<c10::IValue> flatten(const torch::jit::Stack& results);
/// How `results` groups into returns, as CallPattern::returns.
std::vector<std::int32_t> grouping(const torch::jit::Stack& results);

}  // namespace retrograd
