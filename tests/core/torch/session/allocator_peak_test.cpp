#include "core/torch/session/allocator_peak.h"

#include <gtest/gtest.h>

#include "core/questions/memory_timeline.h"
#include "core/torch/analysis/analyse.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

TEST(AllocatorPeak, IsThatOfTheTracesWhereNoOpTakesMore) {
  ModelBuilder m;
  const auto x = m.input("x", {64, 64});
  m.output(m.op("aten.exp.default", {m.op("aten.sin.default", {m.op("aten.neg.default", {x})})}));
  const auto a = m.analyse();
  const auto measured = allocatorPeak(a);
  const auto told = memoryTimeline(*a).peakBytes;
  // An op's operand is let go after it, so while it runs both are there.
  EXPECT_GE(measured.peakBytes, told);
  EXPECT_LE(measured.peakBytes, told + 64 * 64 * 4 + 4096);
  EXPECT_LE(measured.workspaceBytes, 4096);
}

// Sorting takes memory of its own, for the values it moves along: the op is named.
TEST(AllocatorPeak, NamesTheOpWhoseWorkspaceMakesTheDifference) {
  ModelBuilder m;
  const auto x = m.input("x", {128, 256});
  const auto y = m.op("aten.sin.default", {x});
  m.output(m.op("aten.logcumsumexp.default",
                {m.op("aten.matrix_exp.default", {m.op("aten.mm.default", {y, m.op("aten.t.default", {y})})}), 0}));
  const auto a = m.analyse();
  const auto measured = allocatorPeak(a);
  EXPECT_GT(measured.workspaceBytes, 128 * 128 * 4);
  const auto op = measured.workspacePosition < a->forward.ops.size()
                      ? a->forward.ops[measured.workspacePosition]
                      : a->backward.ops[measured.workspacePosition - a->forward.ops.size()];
  EXPECT_NE(a->document->opName(op).find("matrix_exp"), std::string::npos) << a->document->opName(op);
  EXPECT_EQ(measured.peakBytes >= measured.tensorBytes, true);
}

}  // namespace
}  // namespace retrograd::test
