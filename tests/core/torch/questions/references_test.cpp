#include "core/questions/references.h"
#include "core/torch/analysis/analyse.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

using Kind = ValueReference::Kind;

std::string ops(const Analysis& a, const std::vector<ValueReference>& references, Kind kind) {
  std::string text;
  for (const auto& r : references)
    if (r.kind == kind && r.trace == TraceKind::joint)
      text += (text.empty() ? "" : " ") + (r.op ? a.document->opName(r.op) : std::string("-")).substr(r.op ? 15 : 0);
  return text;
}

ValueId output(const Analysis& a, std::size_t op) { return a.document->outputs(a.forward.ops[op])[0]; }

TEST(References, OfAForwardValueNamesMakerUsersAndReadersInTheBackward) {
  ModelBuilder m;
  const auto x = m.input("x", {4, 8}), w = m.parameter("w", {8, 8});
  const auto product = m.op("aten.mm.default", {x, w});
  m.output(m.op("aten.sum.default", {m.op("aten.add.Tensor", {m.op("aten.sin.default", {product}), product})}));
  const auto a = m.analyse();
  ASSERT_EQ(opNames(*a, a->forward), "mm sin add sum");
  const auto mm = output(*a, 0);
  const auto found = referencesOf(*a, mm);
  EXPECT_EQ(ops(*a, found, Kind::producer), "mm.default");
  EXPECT_EQ(ops(*a, found, Kind::user), "sin.default add.Tensor");
  EXPECT_EQ(ops(*a, found, Kind::savedFor), "cos.default");
  EXPECT_EQ(ops(*a, found, Kind::backwardUser), "");
  for (const auto& r : found)
    if (r.kind == Kind::user && r.trace == TraceKind::joint &&
        a->document->opName(r.op) == "torch.ops.aten.add.Tensor") {
      EXPECT_EQ(r.operand, 1u);
      EXPECT_EQ(r.argument, "other");
    }
}

TEST(References, AGradientIsFoundFromItsValueAndBack) {
  ModelBuilder m;
  const auto x = m.input("x", {4, 8}), w = m.parameter("w", {8, 8});
  m.output(m.op("aten.sum.default", {m.op("aten.sin.default", {m.op("aten.mm.default", {x, w})})}));
  const auto a = m.analyse();
  const auto mm = output(*a, 0);
  std::vector<ValueId> gradients;
  for (const auto& r : referencesOf(*a, mm))
    if (r.kind == Kind::gradient) gradients.push_back(r.value);
  ASSERT_EQ(gradients.size(), 1u);  // cos(mm) only leads there
  const auto found = referencesOf(*a, gradients[0]);
  EXPECT_EQ(ops(*a, found, Kind::producer), "mul.Tensor");
  EXPECT_EQ(ops(*a, found, Kind::gradientOf), "mm.default");
  EXPECT_NE(ops(*a, found, Kind::backwardUser), "");
  EXPECT_EQ(ops(*a, found, Kind::savedFor), "");
}

TEST(References, AllTermsOfASumAreGradients) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto y = m.op("aten.sin.default", {x});
  m.output(m.op("aten.exp.default", {y}));
  m.output(m.op("aten.mul.Tensor", {y, 3.0}));
  const auto a = m.analyse();
  std::size_t sums = 0, terms = 0;
  for (const auto& r : referencesOf(*a, output(*a, 0))) {
    if (r.kind != Kind::gradient) continue;
    (a->document->boundSymbol(r.op).origin.role == Role::accumulation ? sums : terms)++;
  }
  EXPECT_EQ(sums, 1u);
  EXPECT_EQ(terms, 2u);
}

TEST(References, AnInputHasNoMakerAndAResultIsNamed) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.sin.default", {x}));
  const auto a = m.analyse();
  for (const auto& r : referencesOf(*a, a->joint.inputs[0])) EXPECT_NE(r.kind, Kind::producer);
  bool isResult = false;
  for (const auto& r : referencesOf(*a, a->joint.outputs[0]))
    isResult |= r.kind == Kind::result && r.trace == TraceKind::joint;
  EXPECT_TRUE(isResult);
  EXPECT_TRUE(referencesOf(*a, {}).empty());
}

}  // namespace
}  // namespace retrograd::test
