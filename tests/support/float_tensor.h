#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd::test {

/// A contiguous float32 tensor that holds its numbers itself.
inline TensorData floatTensor(std::vector<std::int64_t> sizes, std::vector<float> numbers) {
  TensorData data;
  data.meta.strides = contiguousStrides(sizes);
  data.meta.sizes = std::move(sizes);
  auto kept = std::make_shared<std::vector<float>>(std::move(numbers));
  data.data = reinterpret_cast<const std::byte*>(kept->data());
  data.bytes = kept->size() * sizeof(float);
  data.owner = kept;
  return data;
}

}  // namespace retrograd::test
