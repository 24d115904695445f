#pragma once
#include <map>
#include <string>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// The tensors of an exported script: what goes into its safetensors file, and the Python expression that gives each
/// back as it was, with dtype, strides and the memory that it shares with others (tied weights).
class ScriptTensors {
 public:
  /// Returns the expression. Where another tensor has this name, it goes under a longer one.
  std::string add(std::string name, const TensorData& tensor);
  const TensorMap& tensors() const { return tensors_; }

 private:
  std::string storage(const std::string& name, const TensorData& tensor);
  TensorMap tensors_;
  std::map<std::pair<const void*, DType>, std::string> storages_;  ///< by first byte: expression of the flat tensor
};

}  // namespace retrograd
