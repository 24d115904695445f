#include "core/split/recompute.h"

#include <gtest/gtest.h>

#include "core/split/partition.h"
#include "core/trace/dead_code.h"
#include "tests/core/split/joint.h"

namespace retrograd {
namespace {

using test::JointBuilder;
using test::Lines;

const Lines nothing;

/// x -> a = sin(x) -> b = exp(a) -> c = cos(b); two gradient ops read b, the second a as well.
struct Chain : JointBuilder {
  ValueId x = input("x", {4}), a = forward("aten.sin.default", {x}, "a"), b = forward("aten.exp.default", {a}, "b"),
          c = forward("aten.cos.default", {b}, "c"), ct, g1, g2;
  Chain() {
    backward({c});
    ct = cotangent({4});
    g1 = gradient("aten.mul.Tensor", {ct, b}, "g1");
    g2 = gradient("aten.addcmul.default", {g1, a, b}, "g2");
    trace.outputs.push_back(g2);
  }
};

TEST(Recompute, A26_RecomputesOnceJustBeforeTheFirstReader) {
  Chain m;
  const auto joint = recompute(m.document, m.trace, m.marks({m.b}));
  EXPECT_EQ(m.backwardOf(joint), (Lines{"bw_b = exp(a)", "g1 = mul(cotangent, bw_b)", "g2 = addcmul(g1, a, bw_b)"}));
  EXPECT_EQ(m.forwardOf(joint), m.forwardOf(m.trace));
  EXPECT_EQ(m.problems(joint), nothing);
}

TEST(Recompute, A26_TakesTheClosureOfMarkedProducersInOrder) {
  Chain m;
  const auto joint = recompute(m.document, m.trace, m.marks({m.a, m.b}));
  EXPECT_EQ(m.backwardOf(joint),
            (Lines{"bw_a = sin(x)", "bw_b = exp(bw_a)", "g1 = mul(cotangent, bw_b)", "g2 = addcmul(g1, bw_a, bw_b)"}));
}

TEST(Recompute, B11_RecomputesNothingThatTheBackwardDoesNotNeed) {
  Chain m;
  const auto joint = recompute(m.document, m.trace, m.marks({m.c}));
  EXPECT_EQ(joint.ops, m.trace.ops);
}

TEST(Recompute, B11_WhatIsRecomputedIsNotSaved) {
  Chain m;
  const auto joint = recompute(m.document, m.trace, m.marks({m.a, m.b}));
  const auto split = splitJoint(m.document, joint, 1);
  EXPECT_EQ(std::vector(split.backward.inputs.begin(), split.backward.inputs.begin() + 1), std::vector{m.x});
  EXPECT_EQ(split.backward.savedCount, 1u);
}

TEST(Recompute, B15_SecondValuesHaveTheirOwnStorageAndName) {
  Chain m;
  const auto joint = recompute(m.document, m.trace, m.marks({m.b}));
  const auto copy = joint.ops[joint.forwardCount];
  const auto value = std::as_const(m.document).outputs(copy)[0];
  EXPECT_EQ(m.document.displayName(value), "bw_b");
  EXPECT_NE(m.document.value(value).storage, m.document.value(m.b).storage);
  EXPECT_EQ(m.document.storage(value).first, value);
  EXPECT_EQ(m.document.value(value).producer, copy);
  EXPECT_EQ(m.document.value(value).meta, m.document.value(m.b).meta);
}

TEST(Recompute, A9_CopiesSayWhatTheyRepeat) {
  Chain m;
  const auto joint = recompute(m.document, m.trace, m.marks({m.b}));
  const auto& copy = m.document.boundSymbol(joint.ops[joint.forwardCount]);
  EXPECT_EQ(copy.origin.role, Role::recompute);
  EXPECT_TRUE(copy.recomputed);
  EXPECT_EQ(copy.origin.value, m.b);
  EXPECT_EQ(copy.origin.op, m.document.boundSymbol(m.document.value(m.b).producer).origin.op);
}

TEST(Recompute, D10_GradientOpsKeepTheirOwnRole) {
  Chain m;
  const auto before = m.trace.ops[m.trace.forwardCount];
  const auto origin = m.document.boundSymbol(before).origin;
  const auto joint = recompute(m.document, m.trace, m.marks({m.b}));
  const auto& after = m.document.boundSymbol(joint.ops[joint.forwardCount + 1]);
  EXPECT_EQ(after.origin.role, Role::gradient);
  EXPECT_EQ(after.origin.op, origin.op);
  EXPECT_FALSE(after.recomputed);
  ASSERT_EQ(joint.history.size(), 1u);
  EXPECT_EQ(joint.history[0].replaced[0], (std::pair{before, joint.ops[joint.forwardCount + 1]}));
}

TEST(Recompute, A30_NamesOfTheModelAreNotTakenAgain) {
  JointBuilder m;
  const auto x = m.input("bw_a", {4}), a = m.forward("aten.sin.default", {x}, "a");
  m.backward({a});
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {m.cotangent({4}), a}, "g"));
  const auto joint = recompute(m.document, m.trace, m.marks({a}));
  EXPECT_EQ(m.backwardOf(joint), (Lines{"bw_a_1 = sin(bw_a)", "g = mul(cotangent, bw_a_1)"}));
}

TEST(Recompute, D9_RunsAgainOnTheSameJoint) {
  Chain m;
  const auto before = m.backwardOf(m.trace);
  const auto first = recompute(m.document, m.trace, m.marks({m.a, m.b}));
  const auto lines = m.backwardOf(first);
  const auto second = recompute(m.document, m.trace, m.marks({m.a, m.b}));
  EXPECT_EQ(m.backwardOf(second), lines);
  EXPECT_EQ(m.backwardOf(m.trace), before) << "the joint it started from must not change";
  EXPECT_EQ(m.backwardOf(first), lines);
  EXPECT_EQ(m.problems(first), nothing);
  EXPECT_EQ(m.problems(second), nothing);
}

TEST(Recompute, D9_RunsAgainOnItsOwnResult) {
  Chain m;
  const auto first = recompute(m.document, m.trace, m.marks({m.b}));
  const auto second = recompute(m.document, first, m.marks({m.a}));
  EXPECT_EQ(m.backwardOf(second),
            (Lines{"bw_a = sin(x)", "bw_b = exp(bw_a)", "g1 = mul(cotangent, bw_b)", "g2 = addcmul(g1, bw_a, bw_b)"}));
  EXPECT_EQ(m.problems(second), nothing);
}

TEST(Recompute, A27_WhatOnlyTheBackwardNeedsLeavesTheForward) {
  JointBuilder m;
  const auto x = m.input("x", {4}), a = m.forward("aten.cos.default", {x}, "a"),
             y = m.forward("aten.sin.default", {x}, "y");
  m.backward({y});
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {m.cotangent({4}), a}, "g"));
  const auto joint = eliminateDeadCode(m.document, recompute(m.document, m.trace, m.marks({a})));
  EXPECT_EQ(m.forwardOf(joint), Lines{"y = sin(x)"});
  EXPECT_EQ(m.backwardOf(joint), (Lines{"bw_a = cos(x)", "g = mul(cotangent, bw_a)"}));
}

TEST(Recompute, ViewsLieInTheRecomputedStorage) {
  JointBuilder m;
  const auto x = m.input("x", {4}), a = m.forward("aten.sin.default", {x}, "a"),
             v = m.view("aten.view.default", a, "v", {2, 2});
  m.backward({v});
  const auto g = m.gradient("aten.mul.Tensor", {v, m.cotangent({2, 2})}, "g");
  m.trace.outputs.push_back(g);
  const auto joint = recompute(m.document, m.trace, m.marks({a, v}));
  EXPECT_EQ(m.backwardOf(joint), (Lines{"bw_a = sin(x)", "bw_v = view(bw_a)", "g = mul(bw_v, cotangent)"}));
  const auto storageOf = [&](std::size_t i) {
    return m.document.value(std::as_const(m.document).outputs(joint.ops[joint.forwardCount + i])[0]).storage;
  };
  EXPECT_EQ(storageOf(0), storageOf(1));
  EXPECT_NE(storageOf(0), m.document.value(a).storage);
}

TEST(Recompute, BackwardViewsOfRecomputedValuesLieWithThem) {
  JointBuilder m;
  const auto x = m.input("x", {4}), a = m.forward("aten.sin.default", {x}, "a");
  m.backward({a});
  const auto v = m.gradient("aten.t.default", {a}, "v");
  m.document.value(v).storage = m.document.value(a).storage;
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {v, m.cotangent({4})}, "g"));
  const auto joint = recompute(m.document, m.trace, m.marks({a}));
  EXPECT_EQ(m.backwardOf(joint), (Lines{"bw_a = sin(x)", "v = t(bw_a)", "g = mul(v, cotangent)"}));
  const auto now = std::as_const(m.document).operands(joint.ops.back())[0];
  EXPECT_NE(now, v) << "the old joint's value stays where it is";
  EXPECT_EQ(m.document.value(now).storage,
            m.document.value(std::as_const(m.document).outputs(joint.ops[joint.forwardCount])[0]).storage);
  EXPECT_EQ(m.problems(joint), nothing);
}

TEST(Recompute, AGradientThatIsAForwardValueIsRecomputedToo) {
  JointBuilder m;
  const auto x = m.input("x", {4}), a = m.forward("aten.sin.default", {x}, "a");
  m.backward({x});
  m.trace.outputs.push_back(a);
  const auto joint = recompute(m.document, m.trace, m.marks({a}));
  EXPECT_EQ(m.backwardOf(joint), Lines{"bw_a = sin(x)"});
  EXPECT_EQ(m.document.displayName(joint.outputs.back()), "bw_a");
}

/// mask = div_(bernoulli_(empty_like(x))), y = x * mask.
struct Dropout : JointBuilder {
  ValueId x = input("x", {4}), e = forward("aten.empty_like.default", {x}, "e"),
          d = write("aten.bernoulli_.float", {e}, "d", effect::random), mask = write("aten.div_.Scalar", {d}, "mask"),
          y = forward("aten.mul.Tensor", {x, mask}, "y");
  Dropout() {
    backward({y});
    trace.outputs.push_back(gradient("aten.mul.Tensor", {cotangent({4}), mask}, "g"));
  }
};

TEST(Recompute, D1_ADrawIsReplayed) {
  Dropout m;
  const auto joint = recompute(m.document, m.trace, m.marks({m.e, m.d, m.mask}));
  EXPECT_EQ(m.backwardOf(joint), (Lines{"bw_e = empty_like(x)", "bw_d = bernoulli_(bw_e)", "bw_mask = div_(bw_d)",
                                        "g = mul(cotangent, bw_mask)"}));
  EXPECT_EQ(m.document.boundSymbol(joint.ops[joint.forwardCount + 1]).replays, m.document.value(m.d).producer);
  EXPECT_FALSE(m.document.boundSymbol(joint.ops[joint.forwardCount]).replays);
  EXPECT_FALSE(m.document.boundSymbol(m.document.value(m.d).producer).replays);
  EXPECT_EQ(m.problems(joint), nothing);
}

TEST(Recompute, D2_AStorageIsMadeAgainAsAWholeOrNotAtAll) {
  Dropout m;
  std::vector<Problem> problems;
  const auto joint = recompute(m.document, m.trace, m.marks({m.d, m.mask}), &problems);
  EXPECT_EQ(joint.ops, m.trace.ops);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].severity, Problem::Severity::note);
  EXPECT_NE(problems[0].message.find("cannot be recomputed"), std::string::npos);
}

TEST(Recompute, D2_WhatIsReadBeforeAWriteIsReadBeforeItAgain) {
  JointBuilder m;
  const auto x = m.input("x", {4}), a = m.forward("aten.sin.default", {x}, "a"),
             early = m.forward("aten.exp.default", {a}, "early"), late = m.write("aten.cos_.default", {a}, "late");
  m.backward({late});
  const auto g1 = m.gradient("aten.mul.Tensor", {m.cotangent({4}), late}, "g1");
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {g1, early}, "g2"));
  const auto joint = recompute(m.document, m.trace, m.marks({a, early, late}));
  EXPECT_EQ(m.backwardOf(joint), (Lines{"bw_a = sin(x)", "bw_early = exp(bw_a)", "bw_late = cos_(bw_a)",
                                        "g1 = mul(cotangent, bw_late)", "g2 = mul(g1, bw_early)"}));
}

TEST(Recompute, D2_NothingReadsASavedStorageAsItWasBeforeAWrite) {
  JointBuilder m;
  const auto x = m.input("x", {4}), a = m.forward("aten.sin.default", {x}, "a"),
             early = m.forward("aten.exp.default", {a}, "early"), late = m.write("aten.cos_.default", {a}, "late");
  m.backward({late});
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {m.cotangent({4}), early}, "g"));
  const auto joint = recompute(m.document, m.trace, m.marks({early}));
  EXPECT_EQ(joint.ops, m.trace.ops) << "a now holds late";
}

TEST(Recompute, D2_AWriteThroughAViewComesAlong) {
  JointBuilder m;
  const auto x = m.input("x", {4}), a = m.forward("aten.sin.default", {x}, "a"),
             v = m.view("aten.select.int", a, "v", {1});
  const auto w = m.write("aten.copy_.default", {v, x}, "w");
  m.backward({w});
  m.trace.outputs.push_back(
      m.gradient("aten.mul.Tensor", {m.cotangent({4}), a}, "g"));  // reads what w wrote, though no operand says so
  const auto joint = recompute(m.document, m.trace, m.marks({a, v, w}));
  EXPECT_EQ(m.backwardOf(joint),
            (Lines{"bw_a = sin(x)", "bw_v = select(bw_a)", "bw_w = copy_(bw_v, x)", "g = mul(cotangent, bw_a)"}));
}

TEST(Recompute, WritesToBuffersHappenOnce) {
  JointBuilder m;
  const auto x = m.input("x", {4}), buffer = m.input("buffer", {4}, ValueKind::buffer);
  const auto scaled = m.forward("aten.mul.Tensor", {x, buffer}, "scaled"),
             counted = m.write("aten.add_.Tensor", {buffer, x}, "counted");
  const auto y = m.forward("aten.sin.default", {counted}, "y");
  m.backward({y});
  const auto g = m.gradient("aten.mul.Tensor", {m.cotangent({4}), counted}, "g");
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {g, scaled}, "g2"));
  std::vector<Problem> problems;
  const auto joint = recompute(m.document, m.trace, m.marks({scaled, counted, y}), &problems);
  EXPECT_EQ(joint.ops, m.trace.ops) << "the write cannot run twice, and the buffer read before it is gone";
  EXPECT_EQ(problems.size(), 2u);
}

TEST(Recompute, OpaqueOpsRunOnce) {
  JointBuilder m;
  const auto x = m.input("x", {4}), a = m.forward("aten._print.default", {x}, "a", effect::opaque);
  m.backward({a});
  m.trace.outputs.push_back(m.gradient("aten.mul.Tensor", {m.cotangent({4}), a}, "g"));
  EXPECT_EQ(recompute(m.document, m.trace, m.marks({a})).ops, m.trace.ops);
}

}  // namespace
}  // namespace retrograd
