// Stepping back within a memory budget: whatever is kept, every value comes back bit for bit.
#include <gtest/gtest.h>

#include "core/stepping/lifetimes.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/judging/compare.h"
#include "core/torch/opening/open_model.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/session/session.h"
#include "core/torch/tracing/thread_scope.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"
#include "tests/support/writing_model.h"

namespace retrograd::test {
namespace {

const std::string root = sourcePath("");

using Snapshot = std::map<std::int32_t, TensorData>;

/// Every tensor that is there, weights left out; not what uninitialised memory holds.
Snapshot snapshot(const Session& session) {
  Snapshot values;
  const auto& document = *session.analysis().document;
  for (std::size_t i = 0; i < document.valueCount(); ++i) {
    const ValueId id(static_cast<std::int64_t>(i));
    const auto& value = document.value(id);
    if (value.producer && document.opName(value.producer).find("aten.empty") != std::string::npos) continue;
    if (value.kind == ValueKind::parameter) continue;
    const auto state = session.state(id);
    if (state.present && !state.number) values[id.index] = session.contents(id);
  }
  return values;
}

void expectSame(const Snapshot& expected, const Snapshot& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (const auto& [id, tensor] : expected) {
    ASSERT_TRUE(found.contains(id)) << "value " << id;
    EXPECT_TRUE(identical(tensor, found.at(id))) << "value " << id;
  }
}

std::int64_t bytesOfWholeHistory(const std::shared_ptr<const Analysis>& analysis) {
  Session session(analysis);
  session.runTo(session.size());
  return session.history().bytes;
}

/// A run that has seen every position, and knows whether it is in the state that it had there.
class Witness {
 public:
  explicit Witness(Session& session) : session_(session) { note(); }

  void runToTheEnd() {
    while (session_.position() < session_.size()) {
      session_.step();
      EXPECT_LE(session_.history().bytes, session_.history().budget);
      note();
    }
  }
  void expectAsBefore() {
    SCOPED_TRACE("at position " + std::to_string(session_.position()));
    EXPECT_LE(session_.history().bytes, session_.history().budget);
    EXPECT_EQ(session_.liveBytes(), liveBytes_[session_.position()]);
    expectSame(seen_[session_.position()], snapshot(session_));
  }

 private:
  void note() {
    seen_.push_back(snapshot(session_));
    liveBytes_.push_back(session_.liveBytes());
  }
  Session& session_;
  std::vector<Snapshot> seen_;
  std::vector<std::int64_t> liveBytes_;
};

class WithinBudget : public testing::TestWithParam<const char*> {};

TEST_P(WithinBudget, StepsForwardAndBackBitForBit) {
  const auto analysis = openModel(root + GetParam());
  ASSERT_TRUE(analysis->derived());
  const auto whole = bytesOfWholeHistory(analysis);
  for (const auto part : {2, 3, 8}) {  // values made again by few ops, by more; from the start
    SCOPED_TRACE("1/" + std::to_string(part));
    SessionOptions options;
    options.historyBytes = whole / part;
    Session session(analysis, options);
    Witness witness(session);
    witness.runToTheEnd();
    EXPECT_TRUE(session.history().reruns > 0 || session.history().entries < session.size())
        << "the budget is so large that nothing has to run again";
    while (session.position() > 0 && !testing::Test::HasFailure()) {
      session.stepBack();
      witness.expectAsBefore();
    }
    // Jumps of all lengths, to and fro.
    for (const std::size_t percent : {90, 40, 70, 65, 10, 100, 55}) {
      session.runTo(session.size() * percent / 100);
      witness.expectAsBefore();
    }
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, WithinBudget,
    testing::Values("tests/data/models/batchnorm_train/model.pt2", "tests/data/models/cond_hop/model.pt2",
                    "tests/data/models/dropout_train/model.pt2", "tests/data/models/inplace_views/model.pt2",
                    "tests/data/models/mlp/model.pt2", "tests/data/models/multi_output/model.pt2",
                    "tests/data/dynamic/attention/model.pt2", "tests/data/dynamic/convolution/model.pt2",
                    "tests/data/dynamic/loss/model.pt2", "resources/samples/tiny_gpt.pt2"));

/// A step of training that ran: its ops write in place to what it was given.
TEST(History, GoesBackOverARecordedStep) {
  OpenRequest request;
  request.path = root + "tests/data/recordings/step";
  const auto analysis = openModel(request);
  const auto whole = bytesOfWholeHistory(analysis);
  for (const auto bytes : {whole, whole / 2, whole / 8}) {
    SCOPED_TRACE("budget " + std::to_string(bytes));
    SessionOptions options;
    options.historyBytes = bytes;
    Session session(analysis, options);
    Witness witness(session);
    witness.runToTheEnd();
    for (const std::size_t percent : {90, 40, 70, 65, 10, 100, 55, 0}) {
      session.runTo(session.size() * percent / 100);
      witness.expectAsBefore();
    }
    session.runTo(session.size());
    while (session.position() > 0 && !testing::Test::HasFailure()) session.stepBack(), witness.expectAsBefore();
  }
}

/// Of a transformer, two thirds of the memory are enough for steps back of few ops, wherever they begin. How few
/// depends on what ops took when they ran.
TEST(History, StepsBackOverATransformerAreShort) {
  const auto analysis = openModel(root + "resources/samples/tiny_gpt.pt2");
  SessionOptions options;
  options.historyBytes = bytesOfWholeHistory(analysis) * 2 / 3;
  Session session(analysis, options);
  while (session.position() < session.size()) {
    session.step();
    EXPECT_LT(session.history().reruns, session.size() / 8);
    EXPECT_EQ(session.history().entries, session.position());  // it never has to begin at the start
  }
  EXPECT_GT(session.history().reruns, 0u);
}

TEST(History, TakesAnotherBudgetOnTheWay) {
  const auto analysis = openModel(root + "tests/data/models/mlp/model.pt2");
  const auto whole = bytesOfWholeHistory(analysis);
  Session session(analysis);
  Witness witness(session);
  witness.runToTheEnd();
  session.setHistoryBytes(whole / 4);
  EXPECT_LE(session.history().bytes, whole / 4);
  EXPECT_EQ(session.history().budget, whole / 4);
  EXPECT_GT(session.history().reruns, 0u);
  for (int i = 0; i < 5; ++i) session.stepBack(), witness.expectAsBefore();
  session.setHistoryBytes(whole * 2);
  while (session.position() > 0) session.stepBack(), witness.expectAsBefore();
}

/// A sine with a view of it: what is let go together is on one memory when a step back makes it again.
TEST(History, MakesViewsAgainOnTheirMemory) {
  ModelBuilder m;
  const auto x = m.input("x", {64, 64});
  const auto y = m.op("aten.sin.default", {x}), z = m.op("aten.view.default", {y, ModelBuilder::list({4096})});
  const auto sum = m.op("aten.add.Tensor", {m.op("aten.sum.default", {z}), m.op("aten.sum.default", {y})});
  ValueId last = sum;
  for (int i = 0; i < 4; ++i) last = m.op("aten.exp.default", {last});
  m.output(last);
  const auto analysis = m.analyse();
  SessionOptions options;
  options.historyBytes = 64 * 64 * 2;  // half of the sine
  Session session(analysis, options);
  Witness witness(session);
  witness.runToTheEnd();
  EXPECT_EQ(session.history().reruns, 2u);  // the sine and its view
  while (session.position() > 0) session.stepBack(), witness.expectAsBefore();
}

TEST(History, GoesBackOverDrawsWritesAndCopiesAtEveryBudget) {
  const auto analysis = writingModel();
  std::vector<Snapshot> seen;
  for (std::int64_t budget = bytesOfWholeHistory(analysis); budget >= 0; budget = budget > 0 ? budget / 2 : -1) {
    SCOPED_TRACE("budget " + std::to_string(budget));
    SessionOptions options;
    options.historyBytes = budget;
    Session session(analysis, options);
    if (seen.empty()) {
      seen.push_back(snapshot(session));
      while (session.position() < session.size()) session.step(), seen.push_back(snapshot(session));
    }
    session.runTo(session.size());
    while (session.position() > 0) {
      session.stepBack();
      expectSame(seen[session.position()], snapshot(session));
    }
  }
}

TEST(History, TakesBackWhatWasFilledInOnTheWay) {
  const auto analysis = writingModel();
  const auto value = analysis->document->outputs(analysis->forward.ops[0])[0];
  for (const std::int64_t budget : {std::int64_t{1} << 20, std::int64_t{600}, std::int64_t{0}}) {
    SCOPED_TRACE("budget " + std::to_string(budget));
    SessionOptions options;
    options.historyBytes = budget;
    Session session(analysis, options);
    session.step();
    const auto before = session.contents(value);
    auto content = before;
    std::vector<float> ones(static_cast<std::size_t>(before.meta.elements()), 1.f);
    content.data = reinterpret_cast<const std::byte*>(ones.data());
    session.setContents(value, content);
    session.runTo(4);
    const auto after = snapshot(session);
    session.runTo(session.size());
    session.runTo(4);
    expectSame(after, snapshot(session));
    session.runTo(1);
    EXPECT_TRUE(identical(session.contents(value), content));
    session.stepBack();
    session.step();
    EXPECT_TRUE(identical(session.contents(value), before));
  }
}

TEST(History, CountsNoWeightsAndNothingTheRunStillHolds) {
  ModelBuilder m;
  const auto x = m.input("x", {8}), w = m.parameter("w", {8});
  const auto y = m.op("aten.mul.Tensor", {x, w});  // saved for the backward, then let go
  m.output(m.op("aten.exp.default", {m.op("aten.sin.default", {y})}));
  Session session(m.analyse());
  session.runTo(session.forwardSize());
  EXPECT_EQ(session.history().bytes, 32);  // sin's result: only the history has it, for exp keeps its own
  session.runTo(0);
  EXPECT_EQ(session.history().bytes, 0);
}

TEST(History, StopsBetweenOpsOnTheWayBack) {
  const auto analysis = writingModel();
  SessionOptions options;
  options.historyBytes = 0;  // runs again from the start
  Session session(analysis, options);
  session.runTo(session.size());
  std::stop_source stop;
  int reports = 0;
  const Progress progress(stop.get_token(), [&](std::string_view, double) {
    if (++reports == 3) stop.request_stop();
  });
  const auto target = session.forwardSize() / 2;  // a while from where anything is kept
  EXPECT_EQ(session.runTo(target, progress), StopReason::cancelled);
  EXPECT_NE(session.position(), target);
  session.runTo(session.size());
  Session other(analysis);
  other.runTo(other.size());
  expectSame(snapshot(other), snapshot(session));
}

TEST(RunThreads, KeepsOneThreadButForLargeWork) {
  const ThreadScope given(3);
  const auto during = [](int threads) {
    const ThreadScope scope(threads);
    return threadCount();
  };
  EXPECT_EQ(during(RunThreads::forSmallWork()), 1);  // outside of a run as well
  EXPECT_EQ(during(RunThreads::forLargeWork()), 3);
  {
    const RunThreads run(0);
    EXPECT_EQ(threadCount(), 1);
    EXPECT_EQ(during(RunThreads::forSmallWork()), 1);
    EXPECT_EQ(during(RunThreads::forLargeWork()), 3);
    const RunThreads step(2);  // of a session that has its own number
    EXPECT_EQ(during(RunThreads::forLargeWork()), 2);
    EXPECT_EQ(threadCount(), 1);
  }
  EXPECT_EQ(threadCount(), 3);
}

TEST(Session, RunsOnItsOwnThreadsWhichItsFileKeeps) {
  const auto before = threadCount();
  const auto path = testing::TempDir() + "threads.retrograd";
  SaveSessionOptions save;
  save.embed = true;
  save.threads = 3;
  saveSession(*openModel(root + "tests/data/models/mlp/model.pt2"), path, save);
  const auto analysis = loadSession(path);
  EXPECT_EQ(savedThreads(*analysis), 3);
  Session session(analysis);
  EXPECT_EQ(session.threads(), 3);
  session.runTo(3);
  EXPECT_EQ(threadCount(), before);  // others are not disturbed
  SessionOptions options;
  options.threads = 1;
  EXPECT_EQ(Session(analysis, options).threads(), 1);
}

TEST(Session, SumsIntoOnePlaceAlikeOnAllThreads) {
  ModelBuilder m;
  const auto x = m.input("x", {200000});
  const auto index = m.input("index", {200000}, DType::i64);
  const auto zeros = m.buffer("zeros", {7});
  m.output(m.op("aten.index_put.default", {zeros, std::vector<ValueId>{index}, x, Argument::ofBool(true)}));
  DerivationRequest given;
  std::vector<std::int64_t> places(200000);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i * 31 % 7);
  TensorData data;
  data.meta.dtype = DType::i64;
  data.meta.sizes = {200000};
  data.meta.strides = {1};
  data.data = reinterpret_cast<const std::byte*>(places.data());
  data.bytes = places.size() * sizeof(std::int64_t);
  given.inputs["index"] = data;
  SessionOptions options;
  options.threads = 4;
  Session session(m.analyse(given), options);
  session.runTo(session.forwardSize());
  const auto first = session.results().at(0);
  for (int again = 0; again < 8; ++again) {
    session.runTo(0);
    session.runTo(session.forwardSize());
    EXPECT_TRUE(identical(*first, *session.results().at(0)));
  }
}

}  // namespace
}  // namespace retrograd::test
