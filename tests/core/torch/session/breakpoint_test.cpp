#include "core/stepping/breakpoint.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/torch/analysis/analyse.h"
#include "core/torch/judging/compare.h"
#include "core/torch/session/session.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

std::shared_ptr<const Analysis> mlp() { return openModel(sourcePath("tests/data/models/mlp/model.pt2")); }

std::string opBefore(const Session& session) {
  return session.analysis().document->opName(session.opAt(session.position() - 1));
}
std::string opNext(const Session& session) {
  return session.analysis().document->opName(session.opAt(session.position()));
}

TEST(Breakpoint, IsReadFromWordsAndWrittenAsThem) {
  const auto a = mlp();
  for (const char* text : {"kind mm", "module l1 if norm > 2.5", "any if nan", "any if inf after 3",
                           "value tanh if max > 1", "kind mm if meta"})
    EXPECT_EQ(describe(*a, parseBreakpoint(*a, text)), text);
  EXPECT_EQ(a->document->opName(parseBreakpoint(*a, "tanh").op),
            "torch.ops.aten.tanh.default");  // the op that makes it
  for (const char* text : {"", "#", "#99999", "#x", "kind", "kind nothing", "module nowhere", "value nothing", "any if",
                           "any if cold", "any if norm", "any if norm > x", "any if norm < 3", "any after", "any what"})
    EXPECT_THROW(parseBreakpoint(*a, text), Error) << text;
}

TEST(Breakpoint, StopsBeforeOpsOfAKindInBothDirections) {
  Session session(mlp());
  session.setBreakpoints({parseBreakpoint(session.analysis(), "kind mm")});
  std::vector<std::size_t> forward, backward;
  while (session.continueForward() == StopReason::breakpoint) {
    EXPECT_EQ(opNext(session), "torch.ops.aten.mm.default");
    ASSERT_TRUE(session.hitBreakpoint());
    EXPECT_EQ(session.hitBreakpoint()->index, 0u);
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
  ASSERT_EQ(session.continueForward(),
            StopReason::breakpoint);  // views of weights count too: their statistics are looked at
  EXPECT_EQ(session.hitBreakpoint()->index, 1u);
  EXPECT_EQ(describe(a, session.hitBreakpoint()->breakpoint), "any if norm > 1e-09 after 2");
  EXPECT_EQ(session.position(), 3u);
  EXPECT_EQ(session.breakpointHits(),
            (std::vector<std::int64_t>{1, 3}));  // the two that were let pass are among them, and l2 comes next
  session.restart();
  EXPECT_EQ(session.breakpointHits(), (std::vector<std::int64_t>{0, 0}));
}

TEST(Breakpoint, OneThatStaysKeepsItsHits) {
  Session session(mlp());
  const auto& a = session.analysis();
  auto counted = parseBreakpoint(a, "kind mm after 1");
  session.setBreakpoints({parseBreakpoint(a, "any if nan"), counted, counted});
  ASSERT_EQ(session.continueForward(), StopReason::breakpoint);
  EXPECT_EQ(session.breakpointHits(), (std::vector<std::int64_t>{0, 2, 2}));
  counted.enabled = false;
  session.setBreakpoints({counted, parseBreakpoint(a, "kind mm")});
  EXPECT_EQ(session.breakpointHits(), (std::vector<std::int64_t>{2, 0}));
}

// Breakpoints that are met at one place all count it, and the one that stops is the first.
TEST(Breakpoint, ThoseAtOnePlaceAllCount) {
  Session session(mlp());
  const auto& a = session.analysis();
  ASSERT_EQ((session.setBreakpoints({parseBreakpoint(a, "kind mm")}), session.continueForward()),
            StopReason::breakpoint);
  const auto op = session.opAt(session.position());
  const auto before = session.opAt(session.position() - 1);
  session.restart();
  // Two at the op itself, one that lets it pass, and one with a condition that the op before meets: all at one
  // position.
  auto after = parseBreakpoint(a, "any if norm > 0");
  after.where = Breakpoint::Where::op;
  after.op = before;
  const auto at = parseBreakpoint(a, "#" + std::to_string(op.index));
  session.setBreakpoints({at, at, parseBreakpoint(a, "#" + std::to_string(op.index) + " after 5"), after});
  ASSERT_EQ(session.continueForward(), StopReason::breakpoint);
  EXPECT_EQ(session.opAt(session.position()), op);
  EXPECT_EQ(session.hitBreakpoint()->index, 3u) << "one with a condition goes before the others";
  EXPECT_EQ(session.breakpointHits(), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(session.continueForward(), StopReason::end);
  EXPECT_EQ(session.breakpointHits(), (std::vector<std::int64_t>{1, 1, 1, 1}));
}

TEST(Breakpoint, IsHeededByTheRunThatGoesOn) {
  Session session(mlp());
  const auto& a = session.analysis();
  std::size_t reports = 0;
  const Progress progress({}, [&](std::string_view, double) {
    if (++reports == 4) session.setBreakpoints({parseBreakpoint(a, "kind mm")});
  });
  ASSERT_EQ(session.continueForward(progress), StopReason::breakpoint);
  EXPECT_GE(session.position(), 4u);
  EXPECT_EQ(opNext(session), "torch.ops.aten.mm.default");
  const auto met = session.position();
  session.runTo(session.size());
  reports = 0;
  const Progress removing({}, [&](std::string_view, double) {
    if (++reports == 1) session.setBreakpoints({});
  });
  EXPECT_EQ(session.continueBackward(removing), StopReason::start);
  // On the way back, too.
  session.setBreakpoints({});
  session.runTo(session.size());
  reports = 0;
  const Progress adding({}, [&](std::string_view, double) {
    if (++reports == 2) session.setBreakpoints({parseBreakpoint(a, "kind mm")});
  });
  ASSERT_EQ(session.continueBackward(adding), StopReason::breakpoint);
  EXPECT_GE(session.position(), met);
}

TEST(Breakpoint, MayBeSetByAnotherThreadWhileTheRunGoesOn) {
  const auto analysis = openModel(sourcePath("tests/data/models/multi_output/model.pt2"));
  Session session(analysis);
  std::promise<void> running, set;
  bool waited = false;
  const Progress progress({}, [&](std::string_view, double) {
    if (std::exchange(waited, true)) return;
    running.set_value();
    set.get_future().wait();
  });
  std::thread other([&] {
    running.get_future().wait();
    session.setBreakpoints({parseBreakpoint(*analysis, "any")});
    set.set_value();
    for (int i = 0; i < 1000; ++i) session.setBreakpoints({parseBreakpoint(*analysis, "any")});
  });
  EXPECT_EQ(session.continueForward(progress), StopReason::breakpoint);
  EXPECT_EQ(session.position(), 1u);
  other.join();
}

TEST(Breakpoint, StepsOverManyOpsStopAtThoseOnTheWay) {
  Session session(mlp());
  const auto& a = session.analysis();
  session.setBreakpoints({parseBreakpoint(a, "kind mm")});
  ASSERT_EQ(session.continueForward(), StopReason::breakpoint);
  const auto first = session.position();
  ASSERT_EQ(session.continueForward(), StopReason::breakpoint);
  const auto second = session.position();
  session.runTo(first - 1);
  EXPECT_EQ(session.continueTo(first), StopReason::breakpoint);  // what is at the goal stops, too
  EXPECT_EQ(session.continueTo(second + 1), StopReason::breakpoint);
  EXPECT_EQ(session.position(), second);
  EXPECT_EQ(session.continueTo(second - 1), StopReason::step);
  EXPECT_FALSE(session.hitBreakpoint());
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
  for (const std::int64_t budget :
       {std::int64_t{1} << 30, std::int64_t{0}}) {  // undone from history, and by running again
    SessionOptions options;
    options.historyBytes = budget;
    Session session(mlp(), options);
    session.runTo(session.size());
    const auto right = session.gradients();
    session.restart();
    session.runTo(session.forwardSize());
    const auto saved = session.analysis().backward.inputs;
    const auto tanh = *std::find_if(saved.begin(), saved.end(),
                                    [&](ValueId id) { return session.analysis().document->displayName(id) == "tanh"; });
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
