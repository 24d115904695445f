#include "core/torch/tracing/drawn_input.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/full.h>

#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {

TensorData drawnInput(const TensorMeta& meta, std::string_view name, std::uint64_t seed) {
  constexpr std::uint64_t start = 0xcbf29ce484222325, prime = 0x100000001b3;  // FNV-1a: the same on every machine
  auto mixed = start ^ seed;
  for (const char c : name) mixed = (mixed ^ static_cast<unsigned char>(c)) * prime;
  auto generator = at::detail::createCPUGenerator(mixed);
  return copyOut(drawTensor(meta, generator));
}

TensorData withZeros(const TensorData& tensor, std::uint64_t seed) {
  constexpr std::uint64_t firstOfZero = 5, apart = 8;
  const auto first = static_cast<std::int64_t>((firstOfZero + seed) % apart);
  auto copy = borrowTensor(tensor).clone(at::MemoryFormat::Contiguous);
  if (copy.numel() > first) copy.view(-1).slice(0, first, std::nullopt, apart).zero_();
  return copyOut(copy);
}

TensorData filledTensor(const TensorMeta& meta, double number) {
  return copyOut(at::full(meta.sizes, number, at::TensorOptions().dtype(toScalarType(meta.dtype))));
}

}  // namespace retrograd
