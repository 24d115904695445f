#include "core/torch/experiments/compare_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/float_tensor.h"

namespace retrograd::test {
namespace {

TEST(CompareWeights, WhichDifferByHowMuchByModule) {
  const auto same = floatTensor({2}, {1, 2});
  const auto found = compareWeights({{"h.0.weight", same},
                                     {"h.0.sub.weight", same},
                                     {"h.0.bias", floatTensor({2}, {1, 4})},
                                     {"scale", floatTensor({1}, {1})},
                                     {"old", same}},
                                    {{"h.0.weight", floatTensor({2}, {1, 3})},
                                     {"h.0.sub.weight", same},
                                     {"h.0.bias", floatTensor({2}, {1, 2})},
                                     {"scale", floatTensor({1}, {std::numeric_limits<float>::quiet_NaN()})},
                                     {"new", same}});
  EXPECT_EQ(found.compared, 4u);
  ASSERT_EQ(found.differ.size(), 3u);
  EXPECT_EQ(found.differ[0].name, "scale");
  EXPECT_TRUE(std::isinf(found.differ[0].relative));
  EXPECT_EQ(found.differ[1].name, "h.0.bias");
  EXPECT_EQ(found.differ[1].module, "h.0");
  EXPECT_DOUBLE_EQ(found.differ[1].largest, 2);
  EXPECT_DOUBLE_EQ(found.differ[1].relative, 0.5);
  EXPECT_EQ(found.differ[2].name, "h.0.weight");
  EXPECT_EQ(found.onlyInA, std::vector<std::string>{"old"});
  EXPECT_EQ(found.onlyInB, std::vector<std::string>{"new"});
}

TEST(CompareWeights, EqualWeightsDoNotDiffer) {
  const auto found = compareWeights({{"w", floatTensor({2}, {1, 2})}}, {{"w", floatTensor({2}, {1, 2})}});
  EXPECT_TRUE(found.differ.empty());
  EXPECT_EQ(found.largest, 0);
}

}  // namespace
}  // namespace retrograd::test
