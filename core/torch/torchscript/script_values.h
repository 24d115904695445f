#pragma once
// Only .cpp files of tracing include this: it shows LibTorch's types.
#include <ATen/core/ivalue.h>
#include <ATen/core/qualified_name.h>
#include <torch/csrc/jit/api/compilation_unit.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/formats/pickle/pickle.h"

namespace retrograd {

/// Makes LibTorch's values of what a TorchScript archive's pickles hold. Objects get their attributes set and nothing
/// more: a class that wants to restore its state with code of its own (__setstate__) is refused.
class ScriptValues {
 public:
  /// The type of a class of the file, by its qualified name; null where the file's code has none.
  using LoadType = std::function<c10::TypePtr(const std::string& name)>;
  ScriptValues(std::shared_ptr<torch::jit::CompilationUnit> unit, LoadType loadType)
      : unit_(std::move(unit)), loadType_(std::move(loadType)) {}

  /// `type` is the type of the place the value goes to. Throws Error(badInput).
  c10::IValue make(const Pickle& pickle, std::uint32_t index, const c10::TypePtr& type);

  /// Data of the tensors made so far.
  const std::unordered_map<const at::TensorImpl*, TensorData>& tensors() const { return tensors_; }

 private:
  c10::IValue makeList(const Pickle& pickle, const PickleValue& value, const c10::TypePtr& type);
  c10::IValue makeDict(const Pickle& pickle, const PickleValue& value, const c10::TypePtr& type);
  c10::IValue makeTuple(const Pickle& pickle, const PickleValue& value, const c10::TypePtr& type);
  c10::IValue makeObject(const Pickle& pickle, std::uint32_t index);
  c10::IValue makeEnum(const Pickle& pickle, const PickleValue& value, const std::shared_ptr<c10::EnumType>& type);
  at::Tensor makeTensor(const PickleValue& value);
  c10::TypePtr guess(const Pickle& pickle, const PickleValue& value) const;

  std::shared_ptr<torch::jit::CompilationUnit> unit_;
  LoadType loadType_;
  std::map<std::pair<const Pickle*, std::uint32_t>, c10::IValue> made_;  // what occurs twice is one thing
  std::map<const std::byte*, at::Tensor> memory_;                        // tensors of one record share their storage
  std::unordered_map<const at::TensorImpl*, TensorData> tensors_;
  int depth_ = 0;
  std::size_t count_ = 0;
};

}  // namespace retrograd
