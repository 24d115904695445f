#pragma once
// Only .cpp files of tracing include this: it shows LibTorch's types.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/compilation_unit.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/torchscript/torchscript_archive.h"
#include "core/torch/torchscript/script_code.h"
#include "core/torch/torchscript/script_policy.h"

namespace retrograd {

/// A tensor that the module holds in an attribute.
struct ScriptTensor {
  enum class Kind { parameter, buffer, attribute };
  Kind kind;
  std::string name;   ///< qualified: "layers.0.weight"
  at::Tensor tensor;  ///< over the file's own memory: nobody may write to it
  TensorData data;
};

/// A TorchScript module made from a verified archive: its code compiled by LibTorch, its objects built by us from what
/// the pickles say, so that none of the file's code has run (torch::jit::load would run a class's __setstate__ and the
/// constructors of classes of C++). Tensors lie where the archive has them.
class ScriptModule {
 public:
  /// Compiles and checks (ScriptPolicy) the method "forward" and all that it calls. Throws Error(badInput) naming what
  /// is refused.
  explicit ScriptModule(const std::shared_ptr<const Archive>& archive);

  const TorchScriptArchive& parts() const { return parts_; }
  const ScriptCode& code() const { return code_; }
  const std::shared_ptr<torch::jit::CompilationUnit>& unit() const { return unit_; }
  const c10::intrusive_ptr<c10::ivalue::Object>& root() const { return root_; }
  torch::jit::Function& forward() const { return *forward_; }
  /// Throws for a function that forward() cannot reach and that does what no file may do.
  void check(torch::jit::Function& function) { policy_->check(function); }

  /// In the order of the attributes, a module's own before those of its parts; tied tensors come once for each name.
  const std::vector<ScriptTensor>& tensors() const { return tensors_; }
  /// "layers.0" of a module; empty for the root; nullptr for what is not a module of this one.
  const std::string* pathOf(const c10::ivalue::Object* module) const;
  /// What `tensor`, one of tensors(), holds now: attributes may have been given another tensor.
  at::Tensor current(const ScriptTensor& tensor) const;

 private:
  void collect(const c10::intrusive_ptr<c10::ivalue::Object>& object, const std::string& path);
  void collectTensors(const c10::IValue& value, const std::string& name, ScriptTensor::Kind kind, int depth);

  TorchScriptArchive parts_;
  ScriptCode code_;
  std::shared_ptr<torch::jit::CompilationUnit> unit_;
  std::vector<c10::IValue> constants_;  // the compiler keeps a pointer to it
  c10::intrusive_ptr<c10::ivalue::Object> root_;
  torch::jit::Function* forward_ = nullptr;
  std::unique_ptr<ScriptPolicy> policy_;
  std::unordered_map<const at::TensorImpl*, TensorData> data_;  // of the tensors made from the archive
  std::vector<ScriptTensor> tensors_;
  std::unordered_map<const c10::ivalue::Object*, std::string> paths_;
};

}  // namespace retrograd
