#include "core/export/script_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/formats/safetensors/safetensors.h"
#include "core/trace/python_text.h"

namespace retrograd {
namespace {

std::string tuple(const std::vector<std::int64_t>& numbers) {
  return fmt::format("({}{})", fmt::join(numbers, ", "), numbers.size() == 1 ? "," : "");
}

}  // namespace

/// The storage as a flat tensor; of a dtype that safetensors does not know, as bytes.
std::string ScriptTensors::storage(const std::string& name, const TensorData& tensor) {
  const auto [known, isNew] = storages_.try_emplace({tensor.data, tensor.meta.dtype});
  if (!isNew) return known->second;
  TensorData flat = tensor;
  flat.meta = {};
  const bool isKnown = !safetensorsName(tensor.meta.dtype).empty();
  flat.meta.dtype = isKnown ? tensor.meta.dtype : DType::u8;
  flat.meta.sizes = {static_cast<std::int64_t>(tensor.bytes) / itemSize(flat.meta.dtype)};
  flat.meta.strides = {1};
  tensors_.emplace(name, flat);
  auto expression = fmt::format("tensors[{}]", pythonString(name));
  // Kernels rely on complex numbers lying at multiples of 16 bytes, the file's header may be of any length.
  if (!isKnown) expression = fmt::format("{}.clone().view(torch.{})", expression, torchName(tensor.meta.dtype));
  return known->second = expression;
}

std::string ScriptTensors::add(std::string name, const TensorData& tensor) {
  const auto& meta = tensor.meta;
  while (tensors_.contains(name)) name += '_';
  if (meta.elements() == 0)
    return fmt::format("torch.empty_strided({}, {}, dtype=torch.{})", tuple(meta.sizes), tuple(meta.strides),
                       torchName(meta.dtype));
  const bool isWhole =
      meta.offset == 0 && meta.strides == contiguousStrides(meta.sizes) && std::cmp_equal(meta.bytes(), tensor.bytes);
  if (isWhole && !safetensorsName(meta.dtype).empty() && !storages_.contains({tensor.data, meta.dtype})) {
    tensors_.emplace(name, tensor);
    auto expression = fmt::format("tensors[{}]", pythonString(name));
    storages_.emplace(std::pair{tensor.data, meta.dtype}, expression + ".view(-1)");
    return expression;
  }
  return fmt::format("strided({}, {}, {}, {})", storage(name, tensor), tuple(meta.sizes), tuple(meta.strides),
                     meta.offset);
}

}  // namespace retrograd
