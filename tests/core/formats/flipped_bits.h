#pragma once
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace retrograd::test {

/// Flips one bit in each `stride` of `bytes`, by itself: `summaryOf` the damaged bytes is what it is of the whole ones,
/// or refuses them as bad input.
template <typename SummaryOf>
void expectFlippedBitsNoticed(const std::string& bytes, std::size_t stride, const SummaryOf& summaryOf) {
  const auto right = summaryOf(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += stride) {
    auto damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    try {
      EXPECT_EQ(summaryOf(damaged), right) << "bit " << bit;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::badInput) << e.what();
    }
  }
}

}  // namespace retrograd::test
