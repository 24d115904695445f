#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/torch/analysis/analyse.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

/// Whether softshrink of a tensor too large for any memory can be derived: on meta tensors only.
bool derivesHuge() {
  ModelBuilder m;
  const auto x = m.input("x", {1});
  constexpr std::int64_t side = std::int64_t{1} << 24;
  const auto large = m.op("aten.expand.default", {x, ModelBuilder::list({side, side})});
  const auto row = m.op("aten.select.int", {m.op("aten.softshrink.default", {large}), 0, 0});
  m.output(m.op("aten.select.int", {row, 0, 0}));
  return m.analyse()->derived();
}

// An op that refuses one dtype on meta tensors is still asked there for others, in later files too.
TEST(MetaKernels, AnOddArgumentDoesNotKeepAnOpOffItsMetaKernel) {
  ModelBuilder odd;
  odd.output(odd.op("aten.softshrink.default", {odd.input("x", {4}, DType::i64)}));
  bool derived = false;
  try {
    derived = odd.analyse()->derived();
  } catch (const Error&) {
  }
  EXPECT_FALSE(derived) << "softshrink takes no integers";
  EXPECT_TRUE(derivesHuge());
}

// LibTorch's kernel of batch norm does not look how many weights there are: run on too few, it reads what is not its
// own and may end the process.
TEST(MetaKernels, BatchNormOfTooFewWeightsIsRefusedBeforeItRuns) {
  for (const std::int64_t weights : {0, 2}) {
    ModelBuilder m;
    const auto x = m.input("x", {2, 6, 4}), w = m.parameter("w", {weights}), b = m.parameter("b", {6});
    m.output(m.multi("aten.native_batch_norm.default",
                     {x, w, b, Argument(), Argument(), Argument::ofBool(true), 0.1, 1e-5}, 3)[0]);
    const auto analysis = m.analyse();
    EXPECT_FALSE(analysis->derived());
    ASSERT_FALSE(analysis->problems.empty());
    EXPECT_NE(analysis->problems.back().message.find(
                  fmt::format("weight has {} elements, the input has 6 channels", weights)),
              std::string::npos)
        << analysis->problems.back().message;
  }
}

// So do its median, which takes a step of 0 for one of 1, and oneDNN's LSTM, which writes behind its result.
TEST(MetaKernels, AMedianAlongAnExpandedDimensionIsRefused) {
  for (const int dim : {0, 1, -1}) {
    ModelBuilder m;
    const auto wide = m.op("aten.expand.default", {m.input("x", {2, 1}), ModelBuilder::list({2, 4})});
    m.output(m.multi("aten.median.dim", {wide, dim}, 2)[0]);
    const auto analysis = m.analyse();
    EXPECT_EQ(analysis->derived(), dim == 0);
    if (dim == 0) continue;
    ASSERT_FALSE(analysis->problems.empty());
    EXPECT_NE(analysis->problems.back().message.find("expanded along dimension 1"), std::string::npos)
        << analysis->problems.back().message;
  }
}

TEST(MetaKernels, AnLstmWithWeightsOfOtherShapesIsRefused) {
  for (const std::int64_t inputs : {2, 3}) {
    ModelBuilder m;
    const auto x = m.input("x", {2, 2, 2}), h = m.input("h", {1, 2, 2}), w = m.parameter("w", {8, inputs}),
               u = m.parameter("u", {8, 2}), b = m.parameter("b", {8});
    const auto yes = Argument::ofBool(true), no = Argument::ofBool(false);
    m.output(
        m.multi("aten.lstm.input", {x, std::vector{h, h}, std::vector{w, u, b, b}, yes, 1, 0.0, yes, no, no}, 3)[0]);
    EXPECT_EQ(m.analyse()->derived(), inputs == 2);
  }
}

// Attention's backward writes as many positions of the gradient as value has, into memory for those of key.
TEST(MetaKernels, AttentionHasAValueForEachKey) {
  for (const std::int64_t values : {2, 3, 6})
    for (const bool learns : {true, false}) {
      ModelBuilder m;
      const auto q = m.input("q", {1, 2, 3, 2}), k = m.parameter("k", {1, 2, 3, 2});
      const auto v = learns ? m.parameter("v", {1, 2, values, 2}) : m.buffer("v", {1, 2, values, 2});
      m.output(m.op("aten.scaled_dot_product_attention.default", {q, k, v}));
      const auto analysis = m.analyse();
      EXPECT_EQ(analysis->derived(), values == 3) << values;
      if (values == 3) continue;
      ASSERT_FALSE(analysis->problems.empty());
      EXPECT_NE(analysis->problems.back().message.find(fmt::format("value has {} positions, key has 3", values)),
                std::string::npos)
          << analysis->problems.back().message;
    }
}

}  // namespace
}  // namespace retrograd::test
