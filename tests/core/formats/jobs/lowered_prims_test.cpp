#include "core/formats/jobs/lowered_prims.h"

#include <gtest/gtest.h>

namespace retrograd::jobs {
namespace {

PrintedCall lowered(PrintedCall call) {
  EXPECT_EQ(lowerPrims(call), std::nullopt);
  return call;
}

TEST(LoweredPrims, SayTheSameInAten) {
  const auto cast = lowered({"torch.ops.prims.convert_element_type.default", {"x", "torch.float32"}});
  EXPECT_EQ(cast.target, "torch.ops.aten._to_copy.default");
  EXPECT_EQ(cast.arguments, (std::vector<std::string>{"x", "dtype=torch.float32"}));
  const auto fma = lowered({"torch.ops.prims.fma.default", {"a", "b", "c"}});
  EXPECT_EQ(fma.target, "torch.ops.aten.addcmul.default");
  EXPECT_EQ(fma.arguments, (std::vector<std::string>{"c", "a", "b"}));
}

TEST(LoweredPrims, ARangeIsFromStartToEndBySteps) {
  const auto range = lowered(
      {"torch.ops.prims.iota.default", {"4", "start=3", "step=-2", "dtype=torch.int64", "requires_grad=False"}});
  EXPECT_EQ(range.target, "torch.ops.aten.arange.start_step");
  EXPECT_EQ(range.arguments, (std::vector<std::string>{"3", "-5", "-2", "dtype=torch.int64"}));
}

TEST(LoweredPrims, ARangeThatIsNoRangeSaysWhy) {
  PrintedCall unknown{"torch.ops.prims.iota.default", {"n"}}, open{"torch.ops.prims.iota.default", {"4", "start=s0"}},
      large{"torch.ops.prims.iota.default", {"4", "start=0", "step=4611686018427387904"}};
  EXPECT_EQ(lowerPrims(unknown), "a length that is not a number");
  EXPECT_EQ(lowerPrims(open), "a start or step that is not a number");
  EXPECT_EQ(lowerPrims(large), "a range beyond 64 bits");
}

TEST(LoweredPrims, OtherCallsStayAsTheyAre) {
  const auto call = lowered({"torch.ops.aten.mm.default", {"a", "b"}});
  EXPECT_EQ(call.target, "torch.ops.aten.mm.default");
  EXPECT_TRUE(isLowered("prims.iota.default"));
  EXPECT_FALSE(isLowered("prims.fft_c2c.default"));
  EXPECT_FALSE(isLowered("aten.iota.default"));
}

}  // namespace
}  // namespace retrograd::jobs
