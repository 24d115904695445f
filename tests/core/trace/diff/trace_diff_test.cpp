#include "core/trace/diff/trace_diff.h"

#include <gtest/gtest.h>

#include <random>

#include "core/split/partition.h"
#include "core/split/recompute.h"
#include "core/trace/dead_code.h"
#include "core/trace/diff/diff_text.h"
#include "tests/core/split/joint.h"

namespace retrograd {
namespace {

using Kind = DiffRow::Kind;
using Part = DiffRow::Part;
using test::Builder;
using test::JointBuilder;

DiffSide sideOf(const Builder& b) { return {&b.document, &b.trace, &b.trace, nullptr}; }
TraceDiff diffOf(const Builder& a, const Builder& b) { return diffTraces(sideOf(a), sideOf(b)); }

/// Signs of the rows: " ", "~" changed, "-", "+", "<" moved away, ">" moved here; of inputs and results in parentheses.
std::string signs(const TraceDiff& diff) {
  std::string text;
  for (const auto& row : diff.rows) {
    const std::string sign(1, " ~-+<>"[static_cast<std::size_t>(row.kind)]);
    text += row.part == Part::op ? sign : "(" + sign + ")";
  }
  return text;
}

/// Each line of either side is in the rows just once and in order.
void expectWhole(const TraceDiff& diff) {
  std::int32_t left = 0, right = 0;
  for (std::size_t i = 0; i < diff.rows.size(); ++i) {
    const auto& row = diff.rows[i];
    if (row.part != Part::op) continue;
    if (row.showsLeft()) ASSERT_EQ(row.left, left++);
    if (row.showsRight()) ASSERT_EQ(row.right, right++);
    if (row.kind != Kind::movedAway && row.kind != Kind::movedHere) continue;
    const auto& partner = diff.rows.at(static_cast<std::size_t>(row.partner));
    ASSERT_EQ(partner.partner, static_cast<std::int32_t>(i));
    ASSERT_EQ(partner.left, row.left);
    ASSERT_EQ(partner.right, row.right);
    ASSERT_NE(partner.kind, row.kind);
  }
  EXPECT_EQ(static_cast<std::size_t>(left), diff.leftLines.ops.size());
  EXPECT_EQ(static_cast<std::size_t>(right), diff.rightLines.ops.size());
}

void named(Builder& b, ValueId value, const std::string& name, const std::string& module = {}) {
  auto& bound = b.document.boundSymbol(b.document.value(value).producer);
  bound.name = b.document.intern(name);
  if (!module.empty()) bound.module = b.document.intern(module);
}

/// y = cos(sin(x)) ... in modules "h.i", two ops each; returns the last value.
ValueId chain(Builder& b, ValueId x, int layers, int from = 0) {
  for (int i = from; i < from + layers; ++i) {
    x = b.call("aten.sin.default", {x});
    named(b, x, "sin_" + std::to_string(i), "h." + std::to_string(i));
    x = b.call("aten.cos.default", {x});
    named(b, x, "cos_" + std::to_string(i), "h." + std::to_string(i));
  }
  return x;
}

Builder model(int layers) {
  Builder b;
  b.trace.outputs = {chain(b, b.input("x", {4}), layers)};
  return b;
}

}  // namespace

TEST(TraceDiff, AFileReadTwiceIsEqual) {
  const auto a = model(3);
  Builder b;
  b.value({9}, ValueKind::constant, "ids are not the same");
  b.trace.outputs = {chain(b, b.input("x", {4}), 3)};
  const auto diff = diffOf(a, b);
  EXPECT_TRUE(diff.equal());
  EXPECT_EQ(signs(diff), "      ");
  EXPECT_EQ(summaryOf(diff), "equal: 6 ops");
  EXPECT_EQ(unifiedText(diff, {}), "");
}

TEST(TraceDiff, ARenamedInputIsTheSame) {
  const auto a = model(2);
  Builder b;
  b.trace.outputs = {chain(b, b.input("tokens", {4}), 2)};
  EXPECT_TRUE(diffOf(a, b).equal());
}

TEST(TraceDiff, AnInsertedLayerIsAloneAndItsReaderHasAnotherArgument) {
  const auto a = model(2);
  Builder b;
  auto x = chain(b, b.input("x", {4}), 1);
  x = b.call("aten.tanh.default", {x});
  named(b, x, "tanh", "drop");
  b.trace.outputs = {chain(b, x, 1, 1)};
  const auto diff = diffOf(a, b);
  expectWhole(diff);
  EXPECT_EQ(signs(diff), "  +~ ");
  EXPECT_EQ(diff.rows[3].changes, change::arguments);
  EXPECT_EQ(describeChanges(diff, diff.rows[3]), std::vector<std::string>{"arguments: t2 -> t3"});
  EXPECT_EQ(signs(diffOf(b, a)), "  -~ ");
}

TEST(TraceDiff, ARepeatedOpInsertedAboveShiftsNothing) {
  // Without modules and under names that have moved on: only the order helps.
  Builder a, b;
  auto x = a.input("x", {4});
  for (const char* op : {"aten.add.default", "aten.mul.default", "aten.add.default"}) x = a.call(op, {x});
  a.trace.outputs = {x};
  auto y = b.input("x", {4});
  for (const char* op : {"aten.mul.default", "aten.add.default", "aten.mul.default", "aten.add.default"})
    y = b.call(op, {y});
  b.trace.outputs = {y};
  EXPECT_EQ(signs(diffOf(a, b)), "+~  ");
}

TEST(TraceDiff, AnOpInAnothersPlaceIsAChange) {
  const auto a = model(3);
  Builder b;
  auto x = chain(b, b.input("x", {4}), 1);
  x = b.call("aten.sin.default", {x});
  named(b, x, "sin_1", "h.1");
  x = b.call("aten.gelu.default", {x});
  named(b, x, "gelu", "h.1");
  b.trace.outputs = {chain(b, x, 1, 2)};
  const auto diff = diffOf(a, b);
  EXPECT_EQ(signs(diff), "   ~  ");
  EXPECT_EQ(describeChanges(diff, diff.rows[3]),
            std::vector<std::string>{"op: torch.ops.aten.cos.default -> torch.ops.aten.gelu.default"});
}

TEST(TraceDiff, DtypeShapeModuleAndLiteralAreDistinguished) {
  const auto build = [](DType dtype, std::int64_t size, const std::string& module, std::int64_t literal) {
    Builder b;
    const auto x = b.input("x", {size});
    b.document.value(x).meta = b.meta({size}, dtype);
    CallPattern pattern;
    pattern.arguments = {Argument::ofOperand(0), Argument::ofInt(literal)};
    pattern.operandCount = 1;
    Value out;
    out.meta = b.meta({size}, dtype);
    const auto y = b.document.addValue(out);
    b.document.value(y).producer = b.bind(b.symbol("aten.dropout.default", 2), pattern, {x}, {y});
    named(b, y, "dropout", module);
    b.trace.outputs = {y};
    return b;
  };
  const auto changes = [&](const Builder& b) { return diffOf(build(DType::f32, 4, "m", 1), b).rows.back().changes; };
  const auto same = diffOf(build(DType::f32, 4, "m", 1), build(DType::f32, 4, "m", 1));
  EXPECT_TRUE(same.equal());
  EXPECT_EQ(changes(build(DType::f64, 4, "m", 1)), change::dtype);
  EXPECT_EQ(changes(build(DType::f32, 5, "m", 1)), change::shape);
  EXPECT_EQ(changes(build(DType::f32, 4, "n", 1)), change::module);
  EXPECT_EQ(changes(build(DType::f32, 4, "m", 2)), change::arguments);
  const auto a = build(DType::f32, 4, "m", 1), b = build(DType::bf16, 6, "n", 1);
  const auto diff = diffOf(a, b);
  EXPECT_EQ(signs(diff), "(~)~");
  EXPECT_EQ(describeChanges(diff, diff.rows[1]),
            (std::vector<std::string>{"dtype: f32 -> bf16", "shape: [4] -> [6]", "module: m -> n"}));
}

TEST(TraceDiff, AnArgumentThatEqualsTheDefaultIsAsIfNotGiven) {
  const auto build = [](Argument given) {
    Builder b;
    const auto x = b.input("x", {4}), y = b.value({4});
    Symbol s;
    s.name = "aten.gelu.default";
    s.arguments = {Builder::entry("self"), {"approximate", "str", false, Argument::ofString("none"), -1, false}};
    CallPattern pattern;
    pattern.arguments = {Argument::ofOperand(0), std::move(given)};
    pattern.operandCount = 1;
    b.document.value(y).producer = b.bind(b.document.internSymbol(s), pattern, {x}, {y});
    b.trace.outputs = {y};
    return b;
  };
  EXPECT_TRUE(diffOf(build(Argument::ofMissing()), build(Argument::ofString("none"))).equal());
  EXPECT_FALSE(diffOf(build(Argument::ofMissing()), build(Argument::ofString("tanh"))).equal());
}

TEST(TraceDiff, IndependentOpsThatChangePlacesHaveMoved) {
  const auto build = [](bool swapped) {
    Builder b;
    const auto x = b.input("x", {4});
    ValueId parts[2];
    for (int i : {swapped ? 1 : 0, swapped ? 0 : 1}) {
      parts[i] = b.call(i ? "aten.cos.default" : "aten.sin.default", {x});
      named(b, parts[i], i ? "cos" : "sin");
    }
    const auto sum = b.call("aten.mul.Tensor", {parts[0], parts[1]});
    named(b, sum, "mul");
    b.trace.outputs = {sum};
    return b;
  };
  const auto a = build(false), b = build(true);
  const auto diff = diffOf(a, b);
  expectWhole(diff);
  EXPECT_EQ(diff.counts.moved, 1U);
  EXPECT_EQ(diff.counts.same, 2U);
  EXPECT_TRUE(signs(diff) == "> < " || signs(diff) == "< > ") << signs(diff);
  EXPECT_FALSE(diff.equal());
}

TEST(TraceDiff, AnotherResultDiffersThoughAllOpsAreTheSame) {
  auto a = model(2), b = model(2);
  b.trace.outputs = {b.document.outputs(b.trace.ops[1])[0]};
  const auto diff = diffOf(a, b);
  EXPECT_EQ(signs(diff), "    (~)");
  EXPECT_FALSE(diff.equal());
  EXPECT_EQ(diffLine(diff, diff.rows.back(), Side::left), "return t4");
  EXPECT_EQ(diffLine(diff, diff.rows.back(), Side::right), "return t2");
}

TEST(TraceDiff, WhatRequiresAGradientCounts) {
  auto a = model(1), b = model(1);
  b.document.value(b.trace.inputs[0]).requiresGrad = false;
  const auto diff = diffOf(a, b);
  EXPECT_EQ(signs(diff), "(~)  ");
  EXPECT_EQ(describeChanges(diff, diff.rows[0]), std::vector<std::string>{"gradient: required -> not required"});
}

TEST(TraceDiff, DeadCodeIsOnTheLeftAlone) {
  Builder b = model(2);
  const auto kept = b.trace.outputs;
  b.call("aten.exp.default", {kept[0]});
  b.trace.ops.insert(b.trace.ops.begin() + 1, b.trace.ops.back());
  b.trace.ops.pop_back();
  const auto after = eliminateDeadCode(b.document, b.trace);
  const auto diff = diffTraces({&b.document, &b.trace}, {&b.document, &after});
  expectWhole(diff);
  EXPECT_EQ(signs(diff), " -   ");
}

namespace {

/// x -> a = sin(x) -> b = cos(a) -> c = tanh(b), and a backward that reads a, b and c.
struct Deep : JointBuilder {
  ValueId a, b, c;
  Deep() {
    const auto x = input("x", {4});
    a = forward("aten.sin.default", {x}, "a");
    b = forward("aten.cos.default", {a}, "b");
    c = forward("aten.tanh.default", {b}, "c");
    backward({c});
    auto g = cotangent({4});
    for (auto value : {c, b, a}) {
      g = gradient("aten.mul.Tensor", {g, value});
      document.boundSymbol(lastOp()).origin = {document.boundSymbol(document.value(value).producer).origin.op,
                                               Role::gradient};
    }
    trace.outputs.push_back(g);
  }
  Trace recomputing(std::initializer_list<ValueId> values) {
    OpMarks marks(document.boundSymbolCount(), 0);
    for (auto value : values) marks[document.value(value).producer] = 1;
    return recompute(document, trace, marks);
  }
};

}  // namespace

TEST(TraceDiff, RecomputationAddsACopyAndRebindsItsReaders) {
  Deep deep;
  const auto recomputed = deep.recomputing({deep.b});
  const auto diff = diffTraces({&deep.document, &deep.trace}, {&deep.document, &recomputed});
  expectWhole(diff);
  // a, b (no longer kept), c, the gradient of c, the copy of b, the gradient that reads the copy, the gradient of a.
  EXPECT_EQ(signs(diff), " ~  +~ ");
  EXPECT_EQ(describeChanges(diff, diff.rows[1]),
            std::vector<std::string>{"saved: saved for the backward -> not saved"});
  EXPECT_EQ(describeChanges(diff, diff.rows[5]), std::vector<std::string>{"arguments: b -> bw_b"});
  const auto back = diffTraces({&deep.document, &recomputed}, {&deep.document, &deep.trace});
  EXPECT_EQ(signs(back), " ~  -~ ");
}

TEST(TraceDiff, AForwardOpThatOnlyRunsAgainHasMovedToTheBackward) {
  // Nothing of the forward reads `late`, so after dead-code elimination only its copy is left.
  JointBuilder j;
  const auto x = j.input("x", {4});
  const auto y = j.forward("aten.sin.default", {x}, "y");
  const auto late = j.forward("aten.cos.default", {x}, "late");
  j.backward({y});
  const auto g = j.cotangent({4});
  j.trace.outputs.push_back(j.gradient("aten.mul.Tensor", {g, late}));
  OpMarks marks(j.document.boundSymbolCount(), 0);
  marks[j.document.value(late).producer] = 1;
  const auto after = eliminateDeadCode(j.document, recompute(j.document, j.trace, marks));
  const auto diff = diffTraces({&j.document, &j.trace}, {&j.document, &after});
  expectWhole(diff);
  EXPECT_EQ(diff.counts.onlyLeft + diff.counts.onlyRight, 0U) << signs(diff);
  const auto moved = std::find_if(diff.rows.begin(), diff.rows.end(), [&](const DiffRow& row) {
    return diff.op(row, Side::left) == j.document.value(late).producer;
  });
  EXPECT_TRUE(moved->changes & change::recomputed);
  // Its reader reads the same thing still.
  EXPECT_EQ(diff.rows.back().kind, Kind::same) << signs(diff);
}

TEST(TraceDiff, TheSameHoldsBetweenTwoDocuments) {
  Deep one, other;
  const auto recomputed = other.recomputing({other.b});
  const auto computation = [](const Deep& deep) {
    Trace trace;
    for (std::size_t i = 0; i < deep.document.boundSymbolCount(); ++i)
      if (const BoundSymbolId op(static_cast<std::int64_t>(i)); deep.document.boundSymbol(op).origin.role == Role::none)
        trace.ops.push_back(op);
    return trace;
  };
  const auto here = computation(one), there = computation(other);
  const auto diff = diffTraces({&one.document, &one.trace, &here}, {&other.document, &recomputed, &there});
  expectWhole(diff);
  EXPECT_EQ(signs(diff), " ~  +~ ");
}

TEST(TraceDiff, TheForwardIsThePartOfTheJointThatRunsInIt) {
  Deep deep;
  const auto parts = splitJoint(deep.document, deep.trace, 1);
  const auto diff = diffTraces({&deep.document, &deep.trace}, {&deep.document, &parts.forward});
  expectWhole(diff);
  EXPECT_EQ(signs(diff).substr(0, 12), "(-)   ---(-)");
  EXPECT_EQ(diff.counts.changed, 0U);
}

TEST(TraceDiff, RandomEditsAlignWholeAndTheSameEveryTime) {
  std::mt19937 random(5);
  const char* ops[] = {"aten.sin.default", "aten.cos.default", "aten.tanh.default", "aten.mul.Tensor"};
  const auto build = [&](unsigned seed, int edits) {
    std::mt19937 sequence(seed);
    Builder b;
    std::vector<ValueId> values{b.input("x", {4})};
    for (int i = 0; i < 120; ++i) {
      auto op = ops[sequence() % 4];
      const auto first = sequence(), second = sequence();
      if (edits > 0 && random() % 30 == 0) op = ops[random() % 4];
      if (edits > 0 && random() % 30 == 0) continue;
      const auto pick = [&](unsigned long n) {
        return values[values.size() - 1 - n % std::min<std::size_t>(values.size(), 4)];
      };
      const bool binary = std::string(op) == "aten.mul.Tensor";
      values.push_back(b.call(op, binary ? std::vector{pick(first), pick(second)} : std::vector{pick(first)}));
      named(b, values.back(), "n" + std::to_string(values.size()), "h." + std::to_string(i / 10));
    }
    b.trace.outputs = {values.back()};
    return b;
  };
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto a = build(seed, 0), b = build(seed, 1);
    const auto diff = diffOf(a, b), again = diffOf(a, b);
    expectWhole(diff);
    EXPECT_EQ(signs(diff), signs(again));
    EXPECT_GE(diff.counts.same + diff.counts.changed, 100U);
    EXPECT_EQ(signs(diffOf(a, build(seed, 0))), std::string(120, ' '));
  }
}

TEST(TraceDiff, UnifiedTextHoldsBothSides) {
  const auto a = model(6), b = model(6);
  Builder c;
  auto x = chain(c, c.input("x", {4}), 3);
  x = c.call("aten.tanh.default", {x});
  c.trace.outputs = {chain(c, x, 3, 3)};
  const auto diff = diffOf(a, c);
  const auto text = unifiedText(diff, {"left", "right", 1, 80});
  EXPECT_EQ(text,
            "--- left\tcomputation, 12 ops\n"
            "+++ right\tcomputation, 13 ops\n"
            "@@ -6,3 +6,4 @@ h.2\n"
            " t6 = torch.ops.aten.cos.default(t5)  # t6: \"cpu f32[4]\", node cos_2\n"
            "+t7 = torch.ops.aten.tanh.default(t6)  # t7: \"cpu f32[4]\"\n"
            "-t7 = torch.ops.aten.sin.default(t6)  # t7: \"cpu f32[4]\", node sin_3\n"
            "+t8 = torch.ops.aten.sin.default(t7)  # t8: \"cpu f32[4]\", node sin_3\n"
            "~  arguments: t6 -> t7\n"
            " t8 = torch.ops.aten.cos.default(t7)  # t8: \"cpu f32[4]\", node cos_3\n");
  EXPECT_EQ(summaryOf(diff), "1 changed, 1 only in the second, 11 the same");
  const auto columns = sideBySideText(diff, {"left", "right", 0, 120});
  EXPECT_NE(columns.find(" > t7 = torch.ops.aten.tanh.default(t6)"), std::string::npos) << columns;
  EXPECT_NE(columns.find("t7 = torch.ops.aten.sin.default(t6)"), std::string::npos);
  const auto json = diffJson(diff, {"left", "right"});
  EXPECT_EQ(json["counts"]["only_b"], 1);
  ASSERT_EQ(json["rows"].size(), 2U);
  EXPECT_EQ(json["rows"][0]["a"], nullptr);
  EXPECT_EQ(json["rows"][0]["b"]["line"], 7);
  EXPECT_EQ(json["rows"][1]["changes"][0], "arguments");
}

}  // namespace retrograd
