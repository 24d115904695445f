#include "core/questions/memory/block_sizes.h"

#include <algorithm>
#include <bit>

namespace retrograd {

std::uint64_t BlockSizes::rounded(std::uint64_t requested) const {
  if (requested <= allocator::unit) return allocator::unit;
  const auto log = static_cast<int>(std::bit_width(requested)) - 1;
  const auto parts = settings_.divisions[std::clamp(log - 20, 0, 15)];
  if (parts > 1 && requested > allocator::unit * parts) {
    if (std::has_single_bit(requested)) return requested;
    const auto step = std::bit_floor(requested) / parts;
    if (step > 0) return (requested + step - 1) / step * step;
  }
  return (requested + allocator::unit - 1) / allocator::unit * allocator::unit;
}

}  // namespace retrograd
