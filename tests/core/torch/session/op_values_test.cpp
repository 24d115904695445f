// Operands and outputs of any op as they were at that op, wherever a session is, bit for bit.
#include <gtest/gtest.h>

#include <random>

#include "core/torch/judging/compare.h"
#include "core/torch/session/op_values.h"
#include "core/torch/session/session.h"
#include "core/trace/effects.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"
#include "tests/support/writing_model.h"

namespace retrograd::test {
namespace {

using Side = Moment::Side;
constexpr std::int64_t gib = std::int64_t{1} << 30;

/// What a run that stops before an op and right after it holds of the op's values.
struct Expected {
  std::map<ValueId, TensorData> before, after;
};

std::set<ValueId> valuesOf(const Document& document, BoundSymbolId op) {
  std::set<ValueId> values;
  for (const auto list : {document.operands(op), document.outputs(op)})
    for (auto value : list)
      if (value && document.isTensor(value)) values.insert(value);
  return values;
}

std::map<ValueId, TensorData> valuesIn(const Session& session, BoundSymbolId op) {
  std::map<ValueId, TensorData> found;
  for (auto value : valuesOf(*session.analysis().document, op))
    if (const auto state = session.state(value); state.present && !state.number) found[value] = session.contents(value);
  return found;
}

Expected expectedOf(Session& session, BoundSymbolId op) {
  session.runTo(*session.positionOf(op));
  Expected expected{valuesIn(session, op), {}};
  session.step();
  expected.after = valuesIn(session, op);
  return expected;
}

Expected expectedOf(const std::shared_ptr<const Analysis>& analysis, BoundSymbolId op) {
  SessionOptions options;
  options.historyBytes = 0;
  Session session(analysis, options);
  return expectedOf(session, op);
}

bool isUninitialised(const Document& document, ValueId value) {
  const auto maker = document.value(value).producer;
  return maker && document.opName(maker).find("aten.empty") != std::string::npos;
}

void expectSame(const Document& document, const std::map<ValueId, TensorData>& expected, const Moment& moment,
                Side side) {
  for (const auto& [value, tensor] : expected) {
    if (isUninitialised(document, value)) continue;
    const auto state = moment.state(value, side);
    ASSERT_TRUE(state.present) << document.displayName(value) << ": " << state.reason;
    EXPECT_TRUE(identical(tensor, moment.contents(value, side))) << document.displayName(value);
  }
}

void expectSame(const Document& document, BoundSymbolId op, const Expected& expected, const Moment& moment) {
  SCOPED_TRACE(document.opName(op) + " #" + std::to_string(op.index));
  expectSame(document, expected.before, moment, Side::before);
  expectSame(document, expected.after, moment, Side::after);
  for (auto output : document.outputs(op))
    if (output) EXPECT_TRUE(moment.state(output, Side::after).present);
}

class V1OfModel : public testing::TestWithParam<const char*> {};

/// 20 ops at random of each of ten models, with memory for all, for some, and for nothing.
TEST_P(V1OfModel, AnyOpIsAsInARunThatStopsThere) {
  const auto analysis = openModel(sourcePath("") + GetParam());
  ASSERT_TRUE(analysis->derived());
  const auto& ops = analysis->joint.ops;
  std::mt19937 random(7);
  std::vector<std::pair<BoundSymbolId, Expected>> chosen;
  for (int i = 0; i < 20; ++i) {
    const auto op = ops[random() % ops.size()];
    chosen.emplace_back(op, expectedOf(analysis, op));
  }
  OpValues all(analysis);
  all.runAhead(all.size());
  const auto whole = all.bytes();
  EXPECT_EQ(all.letGo(), 0u);
  bool letsGo = false;
  for (const std::int64_t bytes : {2 * gib, whole / 2, whole / 5, std::int64_t{1}}) {
    SCOPED_TRACE("bytes " + std::to_string(bytes));
    OpValuesOptions options;
    options.bytes = bytes;
    OpValues values(analysis, options);
    for (const auto& [op, expected] : chosen) {
      expectSame(*analysis->document, op, expected, *values.at(op));
      EXPECT_LE(values.bytes(), bytes);
    }
    letsGo = letsGo || values.letGo() > 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_TRUE(letsGo || ops.size() < 30) << "nothing had to be made again";
}

INSTANTIATE_TEST_SUITE_P(
    Models, V1OfModel,
    testing::Values("tests/data/models/batchnorm_train/model.pt2", "tests/data/models/cond_hop/model.pt2",
                    "tests/data/models/dropout_train/model.pt2", "tests/data/models/inplace_views/model.pt2",
                    "tests/data/models/mlp/model.pt2", "tests/data/models/multi_output/model.pt2",
                    "tests/data/dynamic/attention/model.pt2", "tests/data/dynamic/convolution/model.pt2",
                    "tests/data/dynamic/loss/model.pt2", "resources/samples/tiny_gpt.pt2"));

/// Every op, in an order that goes to and fro.
std::vector<BoundSymbolId> shuffled(const Analysis& analysis) {
  auto ops = analysis.joint.ops;
  std::shuffle(ops.begin(), ops.end(), std::mt19937(3));
  return ops;
}

TEST(OpValues, BothSidesOfAWriteInPlace) {
  const auto analysis = writingModel();
  const auto& document = *analysis->document;
  OpValues values(analysis);
  int written = 0;
  for (auto op : shuffled(*analysis)) {
    const auto moment = values.at(op);
    expectSame(document, op, expectedOf(analysis, op), *moment);
    for (auto operand : writtenOperands(document, op)) {
      if (!moment->writes(operand)) continue;  // memory of the file: the op wrote to a copy
      ++written;
      const bool mayLeaveIt = document.opName(op).find("relu_") != std::string::npos;  // where all of it is positive
      EXPECT_TRUE(mayLeaveIt ||
                  !identical(moment->contents(operand, Side::before), moment->contents(operand, Side::after)))
          << document.opName(op);
    }
  }
  EXPECT_GT(written, 0);
}

TEST(OpValues, WhatTheSessionRunsIsTakenOverAndThePositionStays) {
  const auto analysis = writingModel();
  const auto& document = *analysis->document;
  OpValues values(analysis);
  Session session(analysis);
  session.setFollower(&values.follower());
  session.runTo(session.size() / 2);
  EXPECT_EQ(values.known(), session.position());
  std::mt19937 random(5);
  for (auto op : shuffled(*analysis)) {
    session.runTo(random() % (session.size() + 1));
    const auto position = session.position();
    expectSame(document, op, expectedOf(analysis, op), *values.at(op));
    EXPECT_EQ(session.position(), position);
  }
}

/// The session's own values are not disturbed by what is kept of them, nor the other way round.
TEST(OpValues, TheSessionGoesOnAsWithoutIt) {
  const auto analysis = writingModel();
  for (const std::int64_t bytes : {2 * gib, std::int64_t{300}, std::int64_t{1}}) {
    OpValuesOptions options;
    options.bytes = bytes;
    OpValues values(analysis, options);
    Session session(analysis), alone(analysis);
    session.setFollower(&values.follower());
    for (const auto percent : {60u, 20u, 100u, 50u, 90u}) {
      session.runTo(session.size() * percent / 100);
      alone.runTo(session.position());
      values.at(analysis->joint.ops[session.size() * (100 - percent) / 100]);
      for (std::size_t i = 0; i < analysis->document->valueCount(); ++i) {
        const ValueId value(i);
        ASSERT_EQ(session.state(value).present, alone.state(value).present);
        if (session.state(value).present && !session.state(value).number &&
            !isUninitialised(*analysis->document, value))
          EXPECT_TRUE(identical(session.contents(value), alone.contents(value)))
              << analysis->document->displayName(value);
      }
    }
  }
}

TensorData filled(const TensorMeta& meta, float number) {
  const auto numbers = std::make_shared<std::vector<float>>(static_cast<std::size_t>(meta.elements()), number);
  TensorData data;
  data.meta = meta;
  data.meta.strides = contiguousStrides(meta.sizes);
  data.data = reinterpret_cast<const std::byte*>(numbers->data());
  data.bytes = numbers->size() * sizeof(float);
  data.owner = numbers;
  return data;
}

/// What is put in by hand holds from there on, in values run ahead too, and no longer once it is taken back.
TEST(OpValues, ContentsPutInByHandHoldHereAsInTheSession) {
  const auto analysis = writingModel();
  const auto& document = *analysis->document;
  const auto& ops = analysis->joint.ops;
  for (const bool known : {false, true}) {
    SCOPED_TRACE(known ? "all was known before" : "nothing was run ahead");
    OpValues values(analysis);
    Session session(analysis);
    session.setFollower(&values.follower());
    if (known) values.runAhead(values.size());
    const std::size_t place = 4;
    session.runTo(place);
    const auto value = document.outputs(ops[place - 1])[0];
    ASSERT_TRUE(session.state(value).present);
    const auto content = filled(session.state(value).meta, 0.25f);
    session.setContents(value, content);
    EXPECT_LE(values.known(), place);
    const auto withIt = [&](BoundSymbolId op) {
      Session other(analysis);
      other.runTo(place);
      if (*other.positionOf(op) < place) return expectedOf(analysis, op);
      other.setContents(value, content);
      return expectedOf(other, op);
    };
    EXPECT_TRUE(identical(values.at(ops[place - 1])->contents(value, Side::after), content));
    for (auto op : shuffled(*analysis))
      if (*session.positionOf(op) != place - 1) expectSame(document, op, withIt(op), *values.at(op));
    session.runTo(session.size());
    session.runTo(place + 3);  // over nothing that takes it back
    for (auto op : shuffled(*analysis))
      if (*session.positionOf(op) != place - 1) expectSame(document, op, withIt(op), *values.at(op));
    session.runTo(place - 1);
    for (auto op : shuffled(*analysis)) expectSame(document, op, expectedOf(analysis, op), *values.at(op));
  }
}

TEST(OpValues, ANewerQuestionCancelsAnOlderOneAndWhatRanStays) {
  const auto analysis = openModel(sourcePath("resources/samples/tiny_gpt.pt2"));
  OpValues values(analysis);
  std::stop_source stop;
  const Progress progress(stop.get_token(), [&](std::string_view, double fraction) {
    if (fraction > 0.5) stop.request_stop();
  });
  EXPECT_THROW(values.at(analysis->joint.ops.back(), progress), Error);
  EXPECT_GT(values.known(), values.size() / 3);
  EXPECT_LT(values.known(), values.size());
  const auto op = analysis->joint.ops.back();
  expectSame(*analysis->document, op, expectedOf(analysis, op), *values.at(op));
}

TEST(OpValues, AnOpOfTheComputationHasTheValuesOfItsForwardOps) {
  const auto analysis = openModel(sourcePath("tests/data/models/mlp/model.pt2"));
  const auto& document = *analysis->document;
  OpValues values(analysis);
  for (auto op : analysis->computation().trace.ops) {
    const auto moment = values.at(op);
    for (auto output : document.outputs(op)) {
      EXPECT_TRUE(moment->state(output, Side::after).present)
          << document.opName(op) << ": " << moment->state(output, Side::after).reason;
      EXPECT_EQ(moment->state(output, Side::before).reason, "not computed yet");
    }
  }
}

/// With memory for a fifth, what is asked for is made of a few ops.
TEST(OpValues, LetsGoOfWhatIsQuickToMake) {
  const auto analysis = openModel(sourcePath("resources/samples/tiny_gpt.pt2"));
  OpValues all(analysis);
  all.runAhead(all.size());
  OpValuesOptions options;
  options.bytes = all.bytes() / 2;
  OpValues values(analysis, options);
  values.runAhead(values.size());
  EXPECT_LE(values.bytes(), options.bytes);
  EXPECT_GT(values.letGo(), 0u);
  EXPECT_TRUE(values.keeps());
  EXPECT_LT(values.longest(), 10.0);
  all.setBytes(options.bytes);
  EXPECT_LE(all.bytes(), options.bytes);
}

/// Numbers of every line, in the order of the run; numbers that an edit makes wrong are reported again.
TEST(OpValues, NewsShowsNumbersOfEveryOpOnce) {
  const auto analysis = openModel(sourcePath("tests/data/models/mlp/model.pt2"));
  OpValuesOptions options;
  options.statistics = true;
  OpValues values(analysis, options);
  values.runAhead(3);
  auto news = values.news();
  EXPECT_EQ(news.begin, 0u);
  EXPECT_EQ(news.end, 3u);
  EXPECT_TRUE(values.news().values.empty());
  std::set<ValueId> seen;
  for (const auto& [value, statistics] : news.values) seen.insert(value);
  values.runAhead(values.size());
  news = values.news();
  EXPECT_EQ(news.begin, 3u);
  EXPECT_EQ(news.end, values.size());
  EXPECT_EQ(news.measures.size(), values.size() - 3);
  for (const auto& [value, statistics] : news.values) EXPECT_TRUE(seen.insert(value).second);
  for (auto op : analysis->joint.ops)
    for (auto output : analysis->document->outputs(op))
      if (output && analysis->document->isTensor(output)) EXPECT_TRUE(seen.contains(output));
  Session session(analysis);
  session.setFollower(&values.follower());
  session.runTo(2);
  const auto value = analysis->document->outputs(analysis->joint.ops[1])[0];
  session.setContents(value, filled(session.state(value).meta, 2.f));
  EXPECT_EQ(values.news().begin, 2u);
}

}  // namespace
}  // namespace retrograd::test
