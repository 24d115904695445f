#include "core/torch/experiments/shrink.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/cast_model.h"
#include "core/torch/analysis/joint_run.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

/// sin(tanh(x)) and its exp: three ops, of which the second is to be found.
std::shared_ptr<const Analysis> threeOps() {
  ModelBuilder m;
  const auto sine = m.op("aten.sin.default", {m.op("aten.tanh.default", {m.input("x", {16})})});
  m.output(sine);
  m.output(m.op("aten.exp.default", {sine}));
  return m.analyse();
}

/// What the second op makes in a right run, `offset` away and in another dtype, under that op's name in `analysis`.
TensorMap sineIn(const Analysis& analysis, DType dtype, double offset) {
  ModelBuilder m;
  const auto sine = m.op("aten.sin.default", {m.op("aten.tanh.default", {m.input("x", {16})})});
  m.output(m.op("aten.add.Tensor", {sine, offset}));
  const auto run = runEager(*m.analyse());
  const auto op = analysis.computation().trace.ops.at(1);
  const auto name = analysis.document->displayName(analysis.document->outputs(op).front());
  return {{name, castTensor(run.outputs.at(0).value(), dtype)}};
}

TEST(Shrink, ValuesOfAnotherDtypeAreComparedAsValues) {
  const auto a = threeOps();
  const auto found = shrink(*a, differsFrom(sineIn(*a, DType::f64, 0.5), 1e-3));
  ASSERT_EQ(found.ops.size(), 1u);
  EXPECT_EQ(found.ops[0], a->computation().trace.ops[1]);
  for (const auto dtype : {DType::f32, DType::f64, DType::c128}) {
    try {
      shrink(*a, differsFrom(sineIn(*a, dtype, 0), 1e-6));
      ADD_FAILURE() << "the same values in another dtype were taken for a fault";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::badUse) << e.what();
    }
  }
}

TEST(Shrink, ANumberAgainstNoNumberIsAFault) {
  const auto a = threeOps();
  EXPECT_EQ(shrink(*a, differsFrom(sineIn(*a, DType::f64, NAN), 1e9)).ops.size(), 1u);
}

}  // namespace
}  // namespace retrograd::test
