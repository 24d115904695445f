#include "core/layout/layout_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/core/layout/ladder.h"

namespace retrograd::layout {
namespace {

using test::Ladder;

LayoutReport reportOf(const Ladder& m, bool allOpen = true) {
  return reportLayout(m.b.document, m.b.trace, nullptr, allOpen);
}

TEST(LayoutReport, aChainIsStraight) {
  Ladder m;
  m.layers(4);
  m.backward();
  const auto report = reportOf(m);
  EXPECT_EQ(report.boxes, 16) << "eight ops in either lane";
  EXPECT_EQ(report.crossings, 0);
  EXPECT_EQ(report.savedCrossings, 0);
  EXPECT_EQ(report.rows, report.edges) << "from each row to the next";
  EXPECT_GT(report.savedLength, 0);
}

TEST(LayoutReport, closedGroupsAreOneBoxEach) {
  Ladder m;
  m.layers(4);
  m.backward();
  const auto report = reportOf(m, false);
  EXPECT_EQ(report.boxes, 2) << "the run of layers, forward and backward";
}

TEST(LayoutReport, linesAcrossTheLadderCross) {
  // x -> sin -> cos -> exp; the backward of exp reads what sin made, that of cos what cos made.
  Ladder m;
  const auto a = m.forward("aten.sin.default", {m.b.input("x", {4})}, ""), b = m.forward("aten.cos.default", {a}, "");
  m.forward("aten.exp.default", {b}, "");
  const auto ops = m.b.trace.ops;
  const auto backward = [&](std::size_t of, ValueId kept) {
    m.b.call("aten.mul.Tensor", {m.b.input("g", {4}, ValueKind::cotangent), kept},
             {m.b.document.boundSymbol(ops[of]).origin.op, Role::gradient});
  };
  m.border();
  backward(2, a);
  backward(1, b);
  EXPECT_EQ(reportOf(m).savedCrossings, 1);
}

TEST(LayoutReport, whatCannotBeDrawnWithoutCrossingsIsCounted) {
  // Three that feed three, each all: nine edges between two rows cross nine times.
  Ladder m;
  std::vector<ValueId> upper;
  for (int i = 0; i < 3; ++i) upper.push_back(m.forward("aten.sin.default", {m.b.input("x", {4})}, ""));
  for (int i = 0; i < 3; ++i) m.forward("aten.addcmul.default", upper, "");
  const auto report = reportOf(m);
  EXPECT_EQ(report.crossings, 9);
  EXPECT_EQ(report.edges, 9);
  EXPECT_EQ(report.rows, 9);
  EXPECT_GT(report.longestFlow, 0);
  EXPECT_GE(report.flowLength, 9 * frame::rowGap);
}

TEST(LayoutReport, equalGroupsCountEachTime) {
  const auto edgesOf = [](int layers) {
    Ladder m;
    m.layers(layers);
    m.backward();
    return reportOf(m).edges;
  };
  const auto eight = edgesOf(8), sixteen = edgesOf(16);
  EXPECT_GE(sixteen - eight, 8 * 2) << "what flows into a layer and within it, for each of them";
}

TEST(LayoutReport, saysTheSameAsJson) {
  Ladder m;
  m.layers(2);
  const auto report = reportOf(m);
  const auto json = toJson(report);
  EXPECT_EQ(json["edges"], report.edges);
  EXPECT_EQ(json["flow_length"], report.flowLength);
}

}  // namespace
}  // namespace retrograd::layout
