// C11 and C14: a recorded step runs again bit for bit, in both directions, and is judged.
#include "core/torch/session/replay.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/formats/recording/recording.h"
#include "core/formats/recording/recording_hash.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/session/op_values.h"
#include "core/torch/session/session.h"
#include "core/torch/tracing/op_table.h"
#include "tests/support/float_tensor.h"

namespace retrograd::test {
namespace {

TensorData bytesOf(const std::vector<float>& numbers) {
  auto kept = std::make_shared<std::vector<float>>(numbers);
  TensorData data;
  data.meta.dtype = DType::u8;
  data.bytes = kept->size() * sizeof(float);
  data.meta.sizes = {static_cast<std::int64_t>(data.bytes)};
  data.meta.strides = {1};
  data.data = reinterpret_cast<const std::byte*>(kept->data());
  data.owner = kept;
  return data;
}

std::string hashOf(const std::vector<float>& numbers) {
  return recordingHashText(recordingHash(std::as_bytes(std::span(numbers))));
}

/// w is doubled in place, y = w + x is made, memory of x changes without an op, z = x + x; the update subtracts y of w.
struct RecordedUpdate {
  std::vector<float> w{1, 2}, x{10, 20}, changed{5, 7};
  std::string wrong;  ///< hash of y instead of the right one
  std::vector<float> y{12, 24};

  std::shared_ptr<const Analysis> analysis() const {
    StepRecording recording;
    recording.path = "step";
    recording.data = {{"w", bytesOf(w)}, {"x", bytesOf(x)}, {"changed", bytesOf(changed)}};
    std::vector<float> doubled{w[0] * 2, w[1] * 2}, sum{doubled[0] + x[0], doubled[1] + x[1]};
    std::vector<float> z{changed[0] * 2, changed[1] * 2}, after{doubled[0] - sum[0], doubled[1] - sum[1]};
    std::string text = R"({"k":"begin","format":"retrograd.recording.ops","version":1}
{"k":"step","n":0}
{"k":"mode","grad":true,"inference":false,"autocast":{},"phase":"forward"}
{"k":"storage","id":0,"bytes":8,"device":"cpu","data":"w"}
{"k":"name","id":0,"storage":0,"role":"parameter","name":"weight"}
{"k":"tensor","id":0,"storage":0,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"storage","id":1,"bytes":8,"device":"cpu","data":"x"}
{"k":"tensor","id":1,"storage":1,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"op","n":0,"op":"aten.mul_.Tensor","in":[{"t":0},2.0],"out":{"t":0},"hash":["DOUBLED"]}
{"k":"storage","id":2,"bytes":8,"device":"cpu"}
{"k":"tensor","id":2,"storage":2,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"op","n":1,"op":"aten.add.Tensor","in":[{"t":0},{"t":1}],"out":{"t":2},"hash":["SUM"]}
{"k":"external","storage":1,"data":"changed"}
{"k":"mode","grad":false,"inference":false,"autocast":{},"phase":"backward"}
{"k":"backward","n":0}
{"k":"storage","id":3,"bytes":8,"device":"cpu"}
{"k":"tensor","id":3,"storage":3,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"op","n":2,"op":"aten.add.Tensor","in":[{"t":1},{"t":1}],"out":{"t":3},"hash":["CHANGED"],"of":1}
{"k":"mode","grad":false,"inference":false,"autocast":{},"phase":"optimizer"}
{"k":"op","n":3,"op":"aten._foreach_sub_.List","in":[[{"t":0}],[{"t":2}]],"out":null,"writes":[0],"hash":["AFTER"]}
{"k":"end","ops":4}
)";
    const auto put = [&](const std::string& name, const std::string& hash) {
      text.replace(text.find(name), name.size(), hash);
    };
    put("DOUBLED", hashOf(doubled));
    put("SUM", wrong.empty() ? hashOf(sum) : wrong);
    put("CHANGED", hashOf(z));
    put("AFTER", hashOf(after));
    return analyse(readRecordingText(text, std::move(recording), lookupSymbol));
  }
};

std::vector<float> floats(const TensorData& data) {
  std::vector<float> numbers(static_cast<std::size_t>(data.meta.elements()));
  std::memcpy(numbers.data(), data.data, numbers.size() * sizeof(float));
  return numbers;
}

TEST(Replay, C11_ARecordedStepRunsAgainAndEachHashIsTheRecordedOne) {
  const auto result = replay(RecordedUpdate().analysis());
  EXPECT_EQ(result.stopped, "");
  EXPECT_EQ(result.compared, 4u);
  EXPECT_EQ(result.differing, 0u);
  EXPECT_EQ(result.ran, 4u);
  EXPECT_EQ(result.notRun.size(), 1u);  // the write that no op made
  EXPECT_TRUE(result.unhealthy.empty());
}

TEST(Replay, C11_TheFirstOpThatDiffersIsNamedWithACause) {
  RecordedUpdate step;
  step.wrong = "00000000000000aa";
  const auto analysis = step.analysis();
  const auto result = replay(analysis);
  EXPECT_EQ(result.differing, 1u);
  ASSERT_EQ(result.first.size(), 1u);
  EXPECT_EQ(analysis->document->opName(result.first[0].op), "torch.ops.aten.add.Tensor");
  EXPECT_NE(result.first[0].cause.find("its kernel gives other bits"), std::string::npos);
}

TEST(Replay, C11_StepsGoBackOverWritesAndMemoryThatChangedWithoutAnOp) {
  const auto analysis = RecordedUpdate().analysis();
  const auto& computation = analysis->computation();
  const auto weight = computation.inputs[0].value, x = computation.inputs[1].value;
  Session session(analysis);
  const auto read = [&](ValueId value) { return floats(session.contents(value)); };
  std::vector<std::vector<float>> weights, xs;
  const auto& ops = analysis->joint.ops;
  const auto look = [&] {
    weights.push_back(session.state(weight).present ? read(weight) : std::vector<float>());
    xs.push_back(session.state(x).present ? read(x) : std::vector<float>());
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    look();
    session.step();
  }
  const auto y = analysis->document->outputs(ops[1])[0];
  for (std::size_t i = ops.size(); i-- > 0;) {
    session.stepBack();
    const auto before = std::pair(weights[i], xs[i]);
    look();
    EXPECT_EQ(std::pair(weights.back(), xs.back()), before) << i;
  }
  session.restart();
  session.runTo(2);
  EXPECT_EQ(read(y), (std::vector<float>{12, 24}));
  session.runTo(ops.size());
  session.restart();
  session.runTo(2);
  EXPECT_EQ(read(y), (std::vector<float>{12, 24}))
      << "what was written in the first run must not be seen in the second";
}

TEST(Replay, C10_ValuesOfAnyOpAreThoseOfItsMoment) {
  const auto analysis = RecordedUpdate().analysis();
  OpValues values(analysis);
  const auto& document = *analysis->document;
  values.runAhead(analysis->joint.ops.size());
  EXPECT_EQ(values.known(), analysis->joint.ops.size());
  const auto y = document.outputs(analysis->joint.ops[1])[0];
  const auto moment = values.of(y);
  ASSERT_TRUE(moment);
}

TEST(Replay, C14_ANanThatReachesAWeightOrTheStepIsNotSound) {
  RecordedUpdate step;
  step.w[1] = std::numeric_limits<float>::quiet_NaN();
  const auto result = replay(step.analysis());
  EXPECT_EQ(result.differing, 0u);
  ASSERT_FALSE(result.unhealthy.empty());
  EXPECT_NE(result.unhealthy[0].sentence.find("weight as the step began has 1 NaN"), std::string::npos)
      << result.unhealthy[0].sentence;
}

TEST(Replay, C14_AZeroGradientIsSaidOfTheStepThatHasIt) {
  StepRecording recording;
  recording.path = "step";
  recording.data = {{"zeros", bytesOf({0, 0})}, {"ones", bytesOf({1, 1})}};
  const auto result = replay(analyse(readRecordingText(R"({"k":"begin","format":"retrograd.recording.ops","version":1}
{"k":"step","n":0}
{"k":"mode","grad":false,"inference":false,"autocast":{},"phase":"optimizer"}
{"k":"storage","id":0,"bytes":8,"device":"cpu","data":"zeros"}
{"k":"name","id":0,"storage":0,"role":"gradient","name":"weight"}
{"k":"tensor","id":0,"storage":0,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"storage","id":1,"bytes":8,"device":"cpu"}
{"k":"tensor","id":1,"storage":1,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"op","n":0,"op":"aten.neg.default","in":[{"t":0}],"out":{"t":1}}
{"k":"step","n":1}
{"k":"external","storage":0,"data":"ones"}
{"k":"storage","id":2,"bytes":8,"device":"cpu"}
{"k":"tensor","id":2,"storage":2,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"op","n":1,"op":"aten.neg.default","in":[{"t":0}],"out":{"t":2}}
{"k":"end","ops":2}
)",
                                                       recording, lookupSymbol)));
  EXPECT_EQ(result.stopped, "");
  ASSERT_EQ(result.unhealthy.size(), 1u);
  EXPECT_EQ(result.unhealthy[0].sentence, "the gradient is zero everywhere in step 0");
  EXPECT_EQ(result.unhealthy[0].parameters, std::vector<std::string>{"weight"});
}

constexpr auto wrongHash = "00000000000000aa";

/// `records`: those after two inputs of a step, x (tensor 0 on storage 0) with the four numbers 1 to 4 and half (tensor
/// 1 on storage 1) with 1 and 2. Storage 2 has room for four more; tensor 2 is all of it, 3 its first half.
ReplayResult replayed(const std::string& records) {
  StepRecording recording;
  recording.path = "step";
  recording.data = {{"x", bytesOf({1, 2, 3, 4})}, {"half", bytesOf({1, 2})}};
  return replay(analyse(readRecordingText(R"({"k":"begin","format":"retrograd.recording.ops","version":1}
{"k":"step","n":0}
{"k":"mode","grad":false,"inference":false,"autocast":{},"phase":"forward"}
{"k":"storage","id":0,"bytes":16,"device":"cpu","data":"x"}
{"k":"tensor","id":0,"storage":0,"offset":0,"sizes":[4],"strides":[1],"dtype":"float32"}
{"k":"storage","id":1,"bytes":8,"device":"cpu","data":"half"}
{"k":"tensor","id":1,"storage":1,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"storage","id":2,"bytes":16,"device":"cpu"}
{"k":"tensor","id":2,"storage":2,"offset":0,"sizes":[4],"strides":[1],"dtype":"float32"}
{"k":"tensor","id":3,"storage":2,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
)" + records,
                                          std::move(recording), lookupSymbol)));
}

std::string op(int number, const std::string& rest) {
  return R"({"k":"op","n":)" + std::to_string(number) + R"(,"op":)" + rest + "}\n";
}
const std::string empty = R"("aten.empty.memory_format","in":[[4]],"kw":{},"out":{"t":2},"hash":["00000000000000bb"])";
std::string cloneOfAll(int number, const std::string& hash) {
  return R"({"k":"storage","id":3,"bytes":16,"device":"cpu"}
{"k":"tensor","id":4,"storage":3,"offset":0,"sizes":[4],"strides":[1],"dtype":"float32"}
)" + op(number, R"("aten.clone.default","in":[{"t":2}],"out":{"t":4},"hash":[")" + hash + R"("])");
}

TEST(Replay, C14_MemoryThatNobodyWroteMayDiffer) {
  const auto result = replayed(op(0, empty) + cloneOfAll(1, wrongHash));
  EXPECT_EQ(result.stopped, "");
  EXPECT_EQ(result.afterUninitialized, 1u);
  EXPECT_EQ(result.differing, 0u);
}

TEST(Replay, C14_BytesThatWereWrittenWithoutAnOpAreKnown) {
  const auto result =
      replayed(op(0, empty) + "{\"k\":\"external\",\"storage\":2,\"data\":\"x\"}\n" + cloneOfAll(1, wrongHash));
  EXPECT_EQ(result.afterUninitialized, 0u);
  EXPECT_EQ(result.differing, 1u);
}

TEST(Replay, C14_WhatAnOpOfALibraryWroteIsKnown) {
  const auto fill = R"("mylib.fill.default","in":[{"t":2}],"out":null,"writes":[2],"hash":[null],"opaque":"an op of a )"
                    R"(library","values":["x"])";
  const auto result = replayed(op(0, empty) + op(1, fill) + cloneOfAll(2, wrongHash));
  EXPECT_EQ(result.stopped, "");
  EXPECT_EQ(result.notRun.size(), 1u);
  EXPECT_EQ(result.ran, 2u);
  EXPECT_EQ(result.afterUninitialized, 0u);
  EXPECT_EQ(result.differing, 1u);
}

TEST(Replay, C14_AWriteToAPartLeavesTheRestUnwritten) {
  const auto copy = R"("aten.copy_.default","in":[{"t":3},{"t":1}],"out":{"t":3},"hash":[")" + hashOf({1, 2}) + "\"]";
  const auto result = replayed(op(0, empty) + op(1, copy) + cloneOfAll(2, wrongHash));
  EXPECT_EQ(result.stopped, "");
  EXPECT_EQ(result.compared, 2u);
  EXPECT_EQ(result.afterUninitialized, 1u);
  EXPECT_EQ(result.differing, 0u);
}

TEST(Replay, C14_OnlyWhatLiesInUnwrittenBytesMayDiffer) {
  const auto copy = R"("aten.copy_.default","in":[{"t":3},{"t":1}],"out":{"t":3},"hash":[")" + hashOf({1, 2}) + "\"]";
  const auto negated = R"({"k":"storage","id":3,"bytes":8,"device":"cpu"}
{"k":"tensor","id":4,"storage":3,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
)" + op(2, R"("aten.neg.default","in":[{"t":3}],"out":{"t":4},"hash":["00000000000000aa"])");
  const auto result = replayed(op(0, empty) + op(1, copy) + negated);
  EXPECT_EQ(result.afterUninitialized, 0u);
  EXPECT_EQ(result.differing, 1u);
}

TEST(Replay, C14_AnOpThatOnlyWritesDoesNotReadUnwrittenMemory) {
  const std::string wrong = std::string(",\"hash\":[\"") + wrongHash + "\"]";
  for (const std::string fill : {R"("aten.copy_.default","in":[{"t":2},{"t":0}],"out":{"t":2})",
                                 R"("aten.zero_.default","in":[{"t":2}],"out":{"t":2})",
                                 R"("aten.neg.out","in":[{"t":0}],"kw":{"out":{"t":2}},"out":{"t":2})"}) {
    const auto result = replayed(op(0, empty) + op(1, fill + wrong));
    EXPECT_EQ(result.stopped, "") << fill;
    EXPECT_EQ(result.afterUninitialized, 0u) << fill;
    EXPECT_EQ(result.differing, 1u) << fill;
  }
  const auto add = replayed(op(0, empty) + op(1, R"("aten.add_.Tensor","in":[{"t":2},{"t":0}],"out":{"t":2})" + wrong));
  EXPECT_EQ(add.afterUninitialized, 1u);
}

TEST(Replay, C14_MemoryThatAResizeAddsIsUnwritten) {
  const auto resized = R"({"k":"resized","id":0,"bytes":32}
{"k":"tensor","id":4,"storage":0,"offset":0,"sizes":[8],"strides":[1],"dtype":"float32"}
)" + op(0, R"("aten.resize_.default","in":[{"t":0},[8]],"out":{"t":4},"hash":["00000000000000bb"])");
  const auto negated = [](const std::string& tensor, const std::string& sizes, const std::string& bytes) {
    return R"({"k":"storage","id":3,"bytes":)" + bytes + R"(,"device":"cpu"}
{"k":"tensor","id":5,"storage":3,"offset":0,"sizes":)" +
           sizes + R"(,"strides":[1],"dtype":"float32"}
)" + op(1, R"("aten.neg.default","in":[{"t":)" + tensor + R"(}],"out":{"t":5},"hash":["00000000000000aa"])");
  };
  const auto all = replayed(resized + negated("4", "[8]", "32"));
  EXPECT_EQ(all.stopped, "");
  EXPECT_EQ(all.afterUninitialized, 1u);
  EXPECT_EQ(all.differing, 0u);
  const auto before = replayed(resized + negated("0", "[4]", "16"));
  EXPECT_EQ(before.afterUninitialized, 0u);
  EXPECT_EQ(before.differing, 1u);
}

TEST(Replay, C3_ABackwardOpJumpsToItsForwardOp) {
  const auto analysis = RecordedUpdate().analysis();
  const auto& ops = analysis->joint.ops;
  EXPECT_EQ(analysis->links.forwardOf(*analysis->document, ops[3]), ops[1]);
  EXPECT_EQ(analysis->joint.forwardCount, 3u);
}

TEST(Replay, C15_DataThatIsMissingStopsTheRunAndSaysWhich) {
  StepRecording recording;
  const std::string text = R"({"k":"begin","format":"retrograd.recording.ops","version":1}
{"k":"storage","id":0,"bytes":8,"device":"cpu","data":"gone"}
{"k":"name","id":0,"storage":0,"role":"parameter","name":"weight"}
{"k":"tensor","id":0,"storage":0,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"op","n":0,"op":"aten.neg_.default","in":[{"t":0}],"out":{"t":0}}
{"k":"end","ops":1}
)";
  const auto result = replay(analyse(readRecordingText(text, recording, lookupSymbol)));
  EXPECT_NE(result.stopped.find("weight"), std::string::npos) << result.stopped;
  EXPECT_EQ(result.ran, 0u);
}

TEST(Replay, C15_AnOpThatReachesFilesIsNotRun) {
  StepRecording recording;
  const std::string text = R"({"k":"begin","format":"retrograd.recording.ops","version":1}
{"k":"storage","id":0,"bytes":8,"device":"cpu"}
{"k":"tensor","id":0,"storage":0,"offset":0,"sizes":[2],"strides":[1],"dtype":"float32"}
{"k":"op","n":0,"op":"aten.from_file.default","in":["/etc/passwd",false,2],"out":{"t":0}}
{"k":"end","ops":1}
)";
  const auto result = replay(analyse(readRecordingText(text, recording, lookupSymbol)));
  EXPECT_NE(result.stopped.find("nobody can run it"), std::string::npos) << result.stopped;
}

}  // namespace
}  // namespace retrograd::test
