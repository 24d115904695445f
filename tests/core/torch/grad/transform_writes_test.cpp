// The grad transform on small traces with writes in place: what is copied, what stays, where writes to inputs land.
#include <gtest/gtest.h>

#include <cmath>

#include "core/torch/judging/compare.h"
#include "core/torch/session/session.h"
#include "tests/core/torch/grad/expect_right.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

TEST(GradTransformWrites, D2_WritesThroughViewsReachTheirBase) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 4}), w = m.parameter("w", {4});
  const auto y = m.op("aten.mul.Tensor", {x, w});
  const auto row = m.op("aten.select.int", {y, 0, 0});
  m.op("aten.mul_.Tensor", {row, 2.0});
  m.op("aten.add_.Tensor", {m.op("aten.view.default", {y, ModelBuilder::list({12})}), 1.0});
  m.output(m.op("aten.sin.default", {y}));
  m.output(m.op("aten.exp.default", {row}));
  const auto a = m.analyse();
  expectRight(a);
  for (auto op : a->backward.ops) EXPECT_NE(a->document->symbol(bound(*a, op).symbol).name, "aten.copy_.default");
}

// Holds D2. LibTorch scatters no complex numbers: they are scattered as pairs of reals, whose dimension the diagonal
// must not pass.
TEST(GradTransformWrites, D2_WritesThroughADiagonalOfComplexNumbers) {
  ModelBuilder m;
  const auto x = m.input("x", {2, 3, 4, 2}), y = m.input("y", {2, 3});
  const auto z = m.op("aten.mul.Scalar", {m.op("aten.view_as_complex.default", {x}), 2.0});
  m.op("aten.mul_.Tensor", {m.op("aten.diagonal.default", {z, 1, -2, -1}), y});
  m.output(m.op("aten.view_as_real.default", {z}));
  expectRight(m.analyse());
}

// Holds D2. The parts of unsafe_split share memory as those of split do; LibTorch's LSTM backward writes to them.
TEST(GradTransformWrites, D2_WritesToThePartsOfUnsafeSplit) {
  ModelBuilder m;
  const auto x = m.input("x", {2, 5});
  const auto y = m.op("aten.mul.Tensor", {x, 2.0});
  const auto parts = m.multi("aten.unsafe_split.Tensor", {y, 2, 1}, 3, true, true);
  m.op("aten.mul_.Tensor", {parts[2], parts[2]});
  m.op("aten.add_.Tensor", {parts[0], 1.0});
  m.output(m.op("aten.sin.default", {y}));
  const auto a = m.analyse();
  ASSERT_TRUE(a->derived());
  Session session(a);
  session.runTo(session.size());
  const auto in = asDoubles(a->request.inputs.at("x")), out = asDoubles(*session.results().at(0));
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto column = i % 5;
    const double twice = 2 * in[i];
    EXPECT_NEAR(out[i], std::sin(column == 4 ? twice * twice : column < 2 ? twice + 1 : twice), 1e-6) << i;
  }
}

TEST(GradTransformWrites, D2_WritesThroughViewsOfComplexTensors) {
  ModelBuilder m;
  const auto x = m.input("x", {4, 3}, DType::c64), w = m.input("w", {2, 3}, DType::c64),
             v = m.input("v", {3}, DType::c64);
  const auto copy = m.op("aten.clone.default", {x});
  const auto part = m.op("aten.slice.Tensor", {copy, -2, 1, 3});
  m.op("aten.mul_.Tensor", {part, w});
  const auto row = m.op("aten.select.int", {copy, 0, 3});
  m.op("aten.copy_.default", {row, m.op("aten.mul.Tensor", {v, v})});
  const auto conj = m.op("aten.mul.Tensor", {m.op("aten._conj.default", {copy}), x});
  m.output(m.op("aten.view_as_real.default", {m.op("aten.resolve_conj.default", {conj})}));
  expectRight(m.analyse());
}

TEST(GradTransformWrites, D2_ReturnedViewOfSomethingWrittenIsMadeInTheForward) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 4});
  const auto y = m.op("aten.sin.default", {x});
  const auto row = m.op("aten.select.int", {y, 0, 1});
  m.op("aten.mul_.Tensor", {y, 2.0});
  m.output(row);
  const auto a = m.analyse();
  expectRight(a);
  EXPECT_EQ(a->document->boundSymbol(a->document->value(a->joint.outputs[0]).producer).origin.role, Role::forward);
  for (std::size_t i = 0; i < a->joint.ops.size(); ++i)
    EXPECT_EQ(bound(*a, a->joint.ops[i]).origin.role == Role::forward, i < a->joint.forwardCount) << i;
}

TEST(GradTransformWrites, D2_WritesToInputsLandAtTheEndOfTheForward) {
  ModelBuilder m;
  const auto x = m.input("x", {4}), b = m.buffer("b", {4});
  m.output(m.op("aten.mul.Tensor", {x, b}));  // reads what b was
  m.op("aten.mul_.Tensor", {b, 0.5});
  m.output(m.op("aten.add.Tensor", {x, b}));  // reads what b is
  const auto a = m.analyse();
  ASSERT_TRUE(a->derived());
  const auto last = a->forward.ops.back();
  EXPECT_EQ(a->document->symbol(bound(*a, last).symbol).name, "aten.copy_.default");
  EXPECT_EQ(bound(*a, last).origin.op, a->computation().trace.ops[1]);
  Session session(a);
  session.runTo(session.size());
  const auto before = asDoubles(a->file.weights.at("b")), after = asDoubles(session.mutated().at("b.b"));
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(after[i]), static_cast<float>(before[i] * 0.5));
}

TEST(GradTransformWrites, InPlaceStaysWhereNobodyCanNotice) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.relu_.default", {m.op("aten.add.Tensor", {x, 1.0})}));
  const auto a = m.analyse();
  expectRight(a);
  EXPECT_EQ(opNames(*a, a->forward), "add relu_");
}

TEST(GradTransformWrites, InPlaceIsCopiedWhereTheOldValueIsSaved) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto y = m.op("aten.sin.default", {x});
  m.output(m.op("aten.exp.default", {y}));
  const auto z = m.op("aten.sigmoid.default", {y});
  m.op("aten.mul_.Tensor", {z, 3.0});
  m.output(z);
  const auto a = m.analyse();  // eager PyTorch refuses: sigmoid has saved what is overwritten
  ASSERT_TRUE(a->derived());
  EXPECT_NE(opNames(*a, a->forward).find("clone mul_"), std::string::npos);
}

TEST(GradTransformWrites, NoGradRegionWritesPassTheGradientThrough) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto y = m.op("aten.sin.default", {x});
  m.op("aten.mul_.Tensor", {y, 2.0}, false);
  m.output(m.op("aten.mul.Tensor", {y, 3.0}));
  expectRight(m.analyse());
}

TEST(GradTransformWrites, B5_ACopyIntoAnInputBelongsToTheForwardThoughNobodyReadsItsOutput) {
  ModelBuilder m;
  const auto x = m.input("x", {3}), seen = m.buffer("seen", {3});
  const auto twice = m.op("aten.mul.Tensor", {x, x});
  m.op("aten.copy_.default", {seen, twice}, /*gradMode=*/false);
  m.output(m.op("aten.sin.default", {x}));
  const auto a = m.analyse();
  expectRight(a);
  ASSERT_TRUE(opNames(*a, a->forward).ends_with("sin copy_")) << opNames(*a, a->forward);
  EXPECT_EQ(a->document->operands(a->forward.ops.back())[0], a->computation().trace.inputs[1]);
  EXPECT_EQ(opNames(*a, a->backward).find("copy_"), std::string::npos);
}

}  // namespace
}  // namespace retrograd::test
