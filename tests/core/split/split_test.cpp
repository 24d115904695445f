#include "core/split/partition.h"

#include <gtest/gtest.h>

#include <array>

namespace retrograd {
namespace {

/// A joint of two forward and three backward ops over one-element tensors, made by hand.
struct Joint {
  Document document;
  Trace trace;
  ValueId x, w, y, z, cotangent;

  ValueId value(ValueKind kind) {
    Value v;
    v.meta = document.internMeta({});
    v.kind = kind;
    v.storage = document.addStorage(4);
    return document.addValue(v);
  }
  ValueId op(std::vector<ValueId> operands, Role role) {
    BoundSymbol bound;
    Symbol symbol;
    symbol.name = "aten.mul.Tensor";
    bound.symbol = document.internSymbol(symbol);
    bound.origin.role = role;
    const auto out = value(role == Role::forward ? ValueKind::activation : ValueKind::gradient);
    bound.pattern = document.internPattern({});
    trace.ops.push_back(document.addBoundSymbol(bound, operands, std::array{out}));
    return out;
  }

  Joint() {
    x = value(ValueKind::input);
    w = value(ValueKind::parameter);
    cotangent = value(ValueKind::cotangent);
    y = op({x, w}, Role::forward);
    z = op({y, w}, Role::forward);
    trace.forwardCount = 2;
    const auto g = op({cotangent, w}, Role::gradient);
    const auto gw = op({cotangent, y}, Role::gradient);
    const auto gx = op({g, w}, Role::gradient);
    trace.inputs = {x, w, cotangent};
    trace.outputs = {z, gx, gw};
    trace.resultCount = 1;
  }
};

TEST(Split, B1_B13_ForwardAndBackwardTogetherAreTheJoint) {
  Joint j;
  const auto [forward, backward] = splitJoint(j.document, j.trace, 2);
  auto both = forward.ops;
  both.insert(both.end(), backward.ops.begin(), backward.ops.end());
  EXPECT_EQ(both, j.trace.ops);
}

TEST(Split, B2_B4_B8_ForwardReturnsResultsThenWhatIsSaved) {
  Joint j;
  const auto [forward, backward] = splitJoint(j.document, j.trace, 2);
  EXPECT_EQ(forward.resultCount, 1u);
  EXPECT_EQ(forward.outputs, (std::vector<ValueId>{j.z, j.w, j.y}));
  EXPECT_EQ(forward.inputs, (std::vector<ValueId>{j.x, j.w}));
}

TEST(Split, B7_SavedOnceInOrderOfFirstUse) {
  Joint j;
  const auto [forward, backward] = splitJoint(j.document, j.trace, 2);
  ASSERT_EQ(backward.savedCount, 2u);
  EXPECT_EQ(backward.inputs[0], j.w);  // read twice, saved once, before y
  EXPECT_EQ(backward.inputs[1], j.y);
}

TEST(Split, B3_B10_CotangentsFollowTheSavedInTheirSlots) {
  Joint j;
  const auto [forward, backward] = splitJoint(j.document, j.trace, 2);
  ASSERT_EQ(backward.inputs.size(), 3u);
  EXPECT_EQ(backward.inputs[2], j.cotangent);
  EXPECT_EQ(backward.outputs.size(), 2u);
}

TEST(Split, B6_GradientThatIsAForwardValueIsSaved) {
  Joint j;
  j.trace.outputs[1] = j.y;
  const auto [forward, backward] = splitJoint(j.document, j.trace, 2);
  EXPECT_NE(std::find(backward.inputs.begin(), backward.inputs.end(), j.y), backward.inputs.end());
}

TEST(Split, B9_NothingDifferentiatedGivesAnEmptyBackward) {
  Joint j;
  j.trace.ops.resize(2);
  j.trace.inputs[2] = {};
  j.trace.outputs = {j.z, {}, {}};
  const auto [forward, backward] = splitJoint(j.document, j.trace, 2);
  EXPECT_TRUE(backward.ops.empty());
  EXPECT_EQ(backward.savedCount, 0u);
  EXPECT_EQ(forward.outputs, std::vector<ValueId>{j.z});
}

}  // namespace
}  // namespace retrograd
