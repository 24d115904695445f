#include "core/torch/judging/perturb.h"

#include <cstring>
#include <utility>

#include "core/formats/files/deferred_check.h"

namespace retrograd {
namespace {

/// A generator whose state is a counter (splitmix64): cheap, and any seed is good.
class Bits {
 public:
  explicit Bits(std::uint64_t seed) : state_(seed) {}
  bool next() {
    auto z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) & 1;
  }

 private:
  std::uint64_t state_;
};

/// `exact`: bits of the mantissa that a short number leaves zero, all but the first 12 (4, 6 of half floats), so that
/// in a run in double what was rounded to float32 still moves. `exponent`: the bits that are all set in NaN and
/// infinities.
template <class Word>
void move(std::byte* at, std::size_t bytes, Word exact, Word exponent, Bits& bits) {
  for (std::size_t i = 0; i + sizeof(Word) <= bytes; i += sizeof(Word)) {
    Word word;
    std::memcpy(&word, at + i, sizeof word);
    const bool up = bits.next();
    if ((word & exact) == 0 || (word & exponent) == exponent) continue;
    word = static_cast<Word>(up ? word + 1 : word - 1);
    std::memcpy(at + i, &word, sizeof word);
  }
}

}  // namespace

TensorData moveByOneStep(const TensorData& tensor, std::uint64_t seed) {
  const auto dtype = tensor.meta.dtype;
  if (!isDifferentiable(dtype) || itemSize(dtype) == 1 || !tensor.data || tensor.memory.type != Device::Type::cpu)
    return tensor;
  std::shared_ptr<std::byte[]> copy(new std::byte[std::max<std::size_t>(tensor.bytes, 1)]);
  requireVerified(tensor.data);
  std::memcpy(copy.get(), tensor.data, tensor.bytes);
  Bits bits(seed);
  switch (dtype) {
    case DType::f64:
    case DType::c128:
      move<std::uint64_t>(copy.get(), tensor.bytes, (std::uint64_t{1} << 40) - 1, 0x7ff0000000000000u, bits);
      break;
    case DType::f32:
    case DType::c64: move<std::uint32_t>(copy.get(), tensor.bytes, (1u << 11) - 1, 0x7f800000u, bits); break;
    case DType::bf16: move<std::uint16_t>(copy.get(), tensor.bytes, 0x7, 0x7f80, bits); break;
    default: move<std::uint16_t>(copy.get(), tensor.bytes, 0xf, 0x7c00, bits); break;  // float16 and complex32
  }
  return {tensor.meta, copy.get(), tensor.bytes, copy, tensor.memory};
}

std::shared_ptr<const Analysis> movedByOneStep(const Analysis& analysis, std::uint64_t seed, bool movesHalves) {
  auto moved = std::make_shared<Analysis>(analysis);
  std::map<const std::byte*, TensorData> tied;
  for (auto* tensors : {&moved->file.weights, &moved->request.inputs, &moved->request.cotangents})
    for (auto& [name, tensor] : *tensors) {
      if (!movesHalves && itemSize(tensor.meta.dtype) == 2) continue;
      auto& one = tied[tensor.data];
      if (!one.data) one = moveByOneStep(tensor, ++seed * 0x2545f4914f6cdd1du);
      auto meta = std::move(tensor.meta);
      const bool fits = one.bytes == tensor.bytes && itemSize(one.meta.dtype) == itemSize(meta.dtype);
      if (!fits)
        one = moveByOneStep({meta, tensor.data, tensor.bytes, tensor.owner, tensor.memory}, seed * 0x2545f4914f6cdd1du);
      tensor = one;
      tensor.meta = std::move(meta);
    }
  if (analysis.differentiated) moved->differentiated = movedByOneStep(*analysis.differentiated, seed, movesHalves);
  return moved;
}

}  // namespace retrograd
