#include "core/torch/analysis/cast_model.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>

#include "core/derivation/precision.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {

TensorData castTensor(const TensorData& tensor, DType dtype) {
  return keepTensor(borrowTensor(tensor).to(toScalarType(dtype)));
}

void castModel(ModelFile& file, DType precision) {
  const auto known = precisions();
  if (std::ranges::find(known, precision) == known.end())
    throw Error(ErrorCode::badUse,
                std::string(torchName(precision)) +
                    " is not a precision for a model; float64, float32, bfloat16 and float16 are",
                file.path);
  const auto own = ownPrecision(file);
  if (own == precision) return;
  castDocument(*file.document, own, precision);
  std::map<const std::byte*, at::Tensor> cast;  // tied weights stay tied
  for (auto* tensors : {&file.weights, &file.constants})
    for (auto& [name, data] : *tensors) {
      const auto dtype = castDType(data.meta.dtype, own, precision);
      if (dtype == data.meta.dtype) continue;
      auto& tensor = cast[data.data];
      if (!tensor.defined() || tensor.sizes() != at::IntArrayRef(data.meta.sizes))
        tensor = borrowTensor(data).to(toScalarType(dtype));
      data = keepTensor(tensor);
    }
}

}  // namespace retrograd
