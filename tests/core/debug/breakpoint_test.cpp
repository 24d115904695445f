#include "core/debug/breakpoint.h"

#include <gtest/gtest.h>

#include "core/checking/compare.h"
#include "core/debug/session.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

std::shared_ptr<const Analysis> mlp() { return openModel(RETROGRAD_SOURCE_DIR "/tests/data/models/mlp/model.pt2"); }

std::string opBefore(const Session& session) { return session.analysis().document->opName(session.opAt(session.position() - 1)); }
std::string opNext(const Session& session) { return session.analysis().document->opName(session.opAt(session.position())); }

TEST(Breakpoint, IsReadFromWordsAndWrittenAsThem) {
  const auto a = mlp();
  for (const char* text : {"kind mm", "module l1 if norm > 2.5", "any if nan", "any if inf after 3", "value tanh if max > 1", "kind mm if meta"})
    EXPECT_EQ(describe(*a, parseBreakpoint(*a, text)), text);
  EXPECT_EQ(a->document->opName(parseBreakpoint(*a, "tanh").op), "torch.ops.aten.tanh.default");  // the op that makes it
  for (const char* text : {"", "#", "#99999", "#x", "kind", "kind nothing", "module nowhere", "value nothing", "any if", "any if cold", "any if norm", "any if norm > x",
                           "any if norm < 3", "any after", "any what"})
    EXPECT_THROW(parseBreakpoint(*a, text), Error) << text;
}

TEST(Breakpoint, StopsBeforeOpsOfAKindInBothDirections) {
  Session session(mlp());
  session.setBreakpoints({parseBreakpoint(session.analysis(), "kind mm")});
  std::vector<std::size_t> forward, backward;
  while (session.continueForward() == StopReason::breakpoint) {
    EXPECT_EQ(opNext(session), "torch.ops.aten.mm.default");
    EXPECT_EQ(session.hitBreakpoint(), 0u);
    forward.push_back(session.position());
  }
  EXPECT_FALSE(session.hitBreakpoint());
  while (session.continueBackward() == StopReason::breakpoint) backward.push_back(session.position());
  std::reverse(backward.begin(), backward.end());
  EXPECT_GT(forward.size(), 2u);
  EXPECT_EQ(forward, backward);
}

TEST(Breakpoint, StopsAfterTheOpThatMeetsACondition) {
  Session session(mlp());
  const auto& a = session.analysis();
  session.setBreakpoints({parseBreakpoint(a, "module l2"), parseBreakpoint(a, "any if norm > 1e-9 after 2")});
  ASSERT_EQ(session.continueForward(), StopReason::breakpoint);  // views of weights count too: their statistics are looked at
  EXPECT_EQ(session.hitBreakpoint(), 1u);
  EXPECT_EQ(session.position(), 3u);
  EXPECT_EQ(session.breakpointHits(), (std::vector<std::int64_t>{0, 3}));  // the two that were let pass are among them
  session.restart();
  EXPECT_EQ(session.breakpointHits(), (std::vector<std::int64_t>{0, 0}));
}

TEST(Breakpoint, OnlyTheOpThatMakesItStopsAtNan) {
  ModelBuilder m;
  const auto x = m.input("x", {3});
  const auto bad = m.op("aten.sqrt.default", {m.op("aten.neg.default", {m.op("aten.exp.default", {x})})});
  m.output(m.op("aten.sum.default", {bad}));
  Session session(m.analyse());
  session.setBreakpoints({parseBreakpoint(session.analysis(), "any if nan")});
  ASSERT_EQ(session.continueForward(), StopReason::breakpoint);
  EXPECT_EQ(opBefore(session), "torch.ops.aten.sqrt.default");
}

TEST(SetContents, GoesOnWithAnotherValueAndIsTakenBack) {
  for (const std::int64_t budget : {std::int64_t{1} << 30, std::int64_t{0}}) {  // undone from history, and by running again
    SessionOptions options;
    options.historyBytes = budget;
    Session session(mlp(), options);
    session.runTo(session.size());
    const auto right = session.gradients();
    session.restart();
    session.runTo(session.forwardSize());
    const auto saved = session.analysis().backward.inputs;
    const auto tanh = *std::find_if(saved.begin(), saved.end(), [&](ValueId id) { return session.analysis().document->displayName(id) == "tanh"; });
    auto content = session.contents(tanh);
    auto numbers = std::make_shared<std::vector<float>>(content.bytes / sizeof(float), 0.5f);
    content.data = reinterpret_cast<const std::byte*>(numbers->data());
    content.owner = numbers;
    session.setContents(tanh, content);
    EXPECT_TRUE(identical(session.contents(tanh), content));
    session.runTo(session.size());
    EXPECT_FALSE(identical(session.gradients().at("p.l3.weight"), right.at("p.l3.weight")));
    const auto changed = session.gradients().at("p.l3.weight");
    session.runTo(session.forwardSize() + 1);  // back, but not over the place
    session.runTo(session.size());
    EXPECT_TRUE(identical(session.gradients().at("p.l3.weight"), changed));
    session.runTo(session.forwardSize() - 1);
    session.runTo(session.size());
    EXPECT_TRUE(identical(session.gradients().at("p.l3.weight"), right.at("p.l3.weight")));
    EXPECT_THROW(session.setContents(tanh, content), Error);  // let go after its last use
  }
}

TEST(SetContents, RefusesAnotherShape) {
  Session session(mlp());
  auto content = session.contents(session.analysis().computation().trace.inputs.back());
  content.meta.sizes = {1};
  content.meta.strides = {1};
  EXPECT_THROW(session.setContents(session.analysis().computation().trace.inputs.back(), content), Error);
}

}  // namespace
}  // namespace retrograd::test
