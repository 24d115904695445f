#include "core/torch/session/session.h"
#include "core/torch/analysis/analyse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/torch/judging/compare.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

std::string model(const std::string& name) { return sourcePath("tests/data/models/") + name + "/model.pt2"; }

/// Every present value's content, by id.
std::map<int, TensorData> snapshot(const Session& session) {
  std::map<int, TensorData> values;
  for (std::size_t i = 0; i < session.analysis().document->valueCount(); ++i) {
    const ValueId id(static_cast<std::int64_t>(i));
    const auto state = session.state(id);
    const auto& document = *session.analysis().document;
    const auto producer = document.value(id).producer;
    if (producer && document.opName(producer).find("aten.empty") != std::string::npos)
      continue;  // memory nobody has written yet
    if (state.present && !state.number) values[id.index] = session.contents(id);
  }
  return values;
}

void expectSame(const std::map<int, TensorData>& a, const std::map<int, TensorData>& b) {
  for (const auto& [id, tensor] : b) EXPECT_TRUE(a.contains(id)) << "value " << id << " is too many";
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [id, tensor] : a) {
    ASSERT_TRUE(b.contains(id)) << "value " << id;
    EXPECT_TRUE(identical(tensor, b.at(id))) << "value " << id;
  }
}

/// Steps to the end and back to the start; at each position everything is as it was.
void expectReversible(const std::shared_ptr<const Analysis>& analysis, std::int64_t historyBytes) {
  SessionOptions options;
  options.historyBytes = historyBytes;
  Session session(analysis, options);
  std::vector<std::map<int, TensorData>> seen;
  for (;;) {
    seen.push_back(snapshot(session));
    if (session.position() == session.size()) break;
    session.step();
  }
  while (session.position() > 0) {
    session.stepBack();
    SCOPED_TRACE("at position " + std::to_string(session.position()) + " before " +
                 analysis->document->opName(session.opAt(session.position())));
    expectSame(seen[session.position()], snapshot(session));
  }
}

std::shared_ptr<const Analysis> randomInPlaceModel() {
  ModelBuilder m;
  const auto x = m.input("x", {3, 4}), w = m.parameter("w", {4}), b = m.buffer("b", {4});
  auto y = m.op("aten.mul.Tensor", {x, w});
  y = m.op("aten.dropout.default", {y, 0.5, Argument::ofBool(true)});
  m.op("aten.add_.Tensor", {m.op("aten.select.int", {y, 0, 1}), 1.0});
  m.op("aten.mul_.Tensor", {b, 0.5});
  m.output(m.op("aten.sin.default", {m.op("aten.relu_.default", {m.op("aten.add.Tensor", {y, b})})}));
  return m.analyse();
}

TEST(Session, StepsBackOverDropoutInPlaceAndCopyBitForBit) {
  expectReversible(randomInPlaceModel(), std::int64_t{1} << 30);
}
TEST(Session, StepsBackWithoutHistoryByRunningAgain) { expectReversible(randomInPlaceModel(), 0); }
TEST(Session, StepsBackOverBatchNorm) { expectReversible(openModel(model("batchnorm_train")), std::int64_t{1} << 30); }

TEST(Session, CrossesTheBorderAndComesBack) {
  const auto analysis = openModel(model("mlp"));
  Session session(analysis);
  EXPECT_EQ(session.forwardSize(), analysis->forward.ops.size());
  EXPECT_EQ(session.runTo(session.forwardSize() + 3), StopReason::cursor);
  EXPECT_EQ(session.opAt(session.forwardSize()), analysis->backward.ops[0]);
  EXPECT_EQ(session.runTo(session.forwardSize() - 1), StopReason::cursor);
  EXPECT_EQ(session.position(), session.forwardSize() - 1);
}

TEST(Session, StopsAtBreakpointsInBothDirections) {
  const auto analysis = openModel(model("mlp"));
  Session session(analysis);
  const auto forward = analysis->forward.ops[2], backward = analysis->backward.ops[5];
  std::vector<Breakpoint> breakpoints(2);
  breakpoints[0].op = forward;
  breakpoints[1].op = backward;
  session.setBreakpoints(breakpoints);
  EXPECT_EQ(session.continueForward(), StopReason::breakpoint);
  EXPECT_EQ(session.opAt(session.position()), forward);
  EXPECT_EQ(session.continueForward(), StopReason::breakpoint);
  EXPECT_EQ(session.opAt(session.position()), backward);
  EXPECT_EQ(session.continueForward(), StopReason::end);
  EXPECT_EQ(session.continueBackward(), StopReason::breakpoint);
  EXPECT_EQ(session.opAt(session.position()), backward);
  breakpoints[0].enabled = false;
  session.setBreakpoints(breakpoints);
  EXPECT_EQ(session.continueBackward(), StopReason::start);
}

TEST(Session, StopsAtTheFirstBadNumber) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto zero = m.op("aten.mul.Tensor", {x, 0.0});
  m.output(m.op("aten.sin.default", {m.op("aten.log.default", {zero})}));
  const auto analysis = m.analyse();
  Session session(analysis);
  session.setBreakOnBadNumber(true);
  EXPECT_EQ(session.continueForward(), StopReason::badNumber);
  EXPECT_EQ(analysis->document->opName(session.opAt(session.position() - 1)), "torch.ops.aten.log.default");
}

TEST(Session, CancelStopsBetweenOps) {
  Session session(openModel(model("mlp")));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(session.continueForward(Progress(stop.get_token(), {})), StopReason::cancelled);
  EXPECT_EQ(session.position(), 0u);
}

TEST(Session, ReleasesValuesAfterTheirLastUseAndSaysWhy) {
  const auto analysis = openModel(model("mlp"));
  Session session(analysis);
  const auto early = analysis->document->outputs(analysis->forward.ops[1])[0];  // the first op only views a parameter
  EXPECT_EQ(session.state(early).reason, "not computed yet");
  EXPECT_THROW(session.contents(early), Error);
  session.runTo(session.size());
  EXPECT_EQ(session.state(early).reason, "released after its last use");
  EXPECT_GT(session.peakBytes(), session.liveBytes());
}

TEST(Session, B14_RunsTwiceTheSame) {
  const auto analysis = randomInPlaceModel();
  Session session(analysis);
  session.runTo(session.size());
  const auto first = session.gradients();
  session.restart();
  session.runTo(session.size());
  for (const auto& [name, gradient] : session.gradients()) EXPECT_TRUE(identical(gradient, first.at(name))) << name;
}

TEST(Session, TwoSessionsDoNotDisturbEachOther) {
  const auto analysis = randomInPlaceModel();
  Session alone(analysis), a(analysis), b(analysis);
  alone.runTo(alone.size());
  while (a.position() < a.size()) {
    a.step();
    b.step();
  }
  for (const auto& [name, gradient] : alone.gradients()) {
    EXPECT_TRUE(identical(gradient, a.gradients().at(name))) << name;
    EXPECT_TRUE(identical(gradient, b.gradients().at(name))) << name;
  }
}

TEST(Session, NeverWritesTheFilesWeights) {
  const auto analysis = openModel(model("batchnorm_train"));
  std::map<std::string, std::vector<double>> before;
  for (const auto& [name, tensor] : analysis->file.weights) before[name] = asDoubles(tensor);
  Session session(analysis);
  session.runTo(session.size());
  EXPECT_FALSE(session.mutated().empty());
  for (const auto& [name, tensor] : analysis->file.weights) EXPECT_EQ(asDoubles(tensor), before[name]) << name;
}

TEST(Session, CountsLiveBytesOfDistinctStorages) {
  ModelBuilder m;
  const auto x = m.input("x", {8});
  const auto y = m.op("aten.exp.default", {x});
  m.output(m.op("aten.view.default", {y, ModelBuilder::list({2, 4})}));
  const auto analysis = m.analyse();
  Session session(analysis);
  session.step();
  EXPECT_EQ(session.liveBytes(), 32);
  session.step();
  EXPECT_EQ(session.liveBytes(), 32);  // a view holds no memory of its own
}

TEST(Session, StatisticsOfAValue) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.sin.default", {x}));
  DerivationRequest options;
  static const float numbers[4] = {1, -3, 0, std::numeric_limits<float>::quiet_NaN()};
  TensorData data;
  data.meta.sizes = {4};
  data.meta.strides = {1};
  data.data = reinterpret_cast<const std::byte*>(numbers);
  data.bytes = sizeof numbers;
  options.inputs["x"] = data;
  Session session(m.analyse(options));
  const auto s = session.statistics(x);
  EXPECT_EQ(s.elements, 4);
  EXPECT_EQ(s.nan, 1);
  EXPECT_EQ(s.zeros, 1);
  EXPECT_DOUBLE_EQ(s.min, -3);
  EXPECT_DOUBLE_EQ(s.max, 1);
  EXPECT_NEAR(s.mean, -2.0 / 3, 1e-12);
  EXPECT_NEAR(s.norm, std::sqrt(10.0), 1e-12);
  const auto histogram = session.histogram(x, 4);
  EXPECT_EQ(histogram, (std::vector<std::int64_t>{1, 0, 0, 2}));
}

TEST(Analysis, InputsAreChecked) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.sin.default", {x}));
  DerivationRequest options;
  options.inputs["y"] = {};
  EXPECT_THROW(m.analyse(options), Error);
}

}  // namespace
}  // namespace retrograd::test
