#include "core/torch/tracing/drawn_input.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/ones.h>

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

TensorData drawnCotangent(const TensorMeta& meta, bool isLoss, std::string_view name, std::uint64_t seed) {
  if (!isLoss) return drawnInput(meta, name, seed);
  return copyOut(at::ones(meta.sizes, at::TensorOptions().dtype(toScalarType(meta.dtype))));
}

}  // namespace retrograd
