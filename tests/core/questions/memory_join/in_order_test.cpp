#include "core/questions/memory_join/in_order.h"

#include <gtest/gtest.h>

#include <string>

namespace retrograd {
namespace {

std::vector<std::int32_t> pairs(const std::string& first, const std::string& second) {
  return InOrder::pairs(first.size(), second.size(),
                        [&](std::size_t i, std::size_t j) { return first[i] == second[j] ? 1 : 0; });
}

TEST(InOrder, PairsRunInTheOrderOfBoth) {
  EXPECT_EQ(pairs("abc", "abc"), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(pairs("axbyc", "abc"), (std::vector<std::int32_t>{0, -1, 1, -1, 2}));
  EXPECT_EQ(pairs("ac", "abc"), (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(pairs("", "abc"), std::vector<std::int32_t>());
  EXPECT_EQ(pairs("abc", ""), (std::vector<std::int32_t>{-1, -1, -1}));
}

/// The band follows: extra things add up to many times its width.
TEST(InOrder, LongSequencesArePairedAtALinearCost) {
  constexpr std::size_t count = 300'000;
  const auto pairs = InOrder::pairs(2 * count, count, [](std::size_t i, std::size_t j) { return i == 2 * j ? 1 : 0; });
  for (std::size_t i = 0; i < pairs.size(); ++i) ASSERT_EQ(pairs[i], i % 2 == 0 ? static_cast<int>(i / 2) : -1) << i;
}

}  // namespace
}  // namespace retrograd
