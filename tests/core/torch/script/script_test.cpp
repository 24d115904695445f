// The debugger's commands as a user types them.
#include "core/torch/script/script.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <stop_token>

#include "core/formats/safetensors/safetensors.h"
#include "core/questions/memory_timeline.h"
#include "core/split/min_cut.h"
#include "core/torch/checking/check.h"
#include "core/torch/experiments/what_if.h"
#include "tests/core/formats/cases.h"
#include "tests/support/float_tensor.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

std::shared_ptr<const Analysis> tinyGpt() { return openModel(sourcePath("resources/samples/tiny_gpt.pt2")); }

TEST(DebugScript, StepsOverTheBorderAndBack) {
  DebugScript script(tinyGpt());
  const auto size = script.session().size(), border = script.session().forwardSize();
  EXPECT_EQ(script.run("where").json["position"], 0);
  EXPECT_EQ(script.run("run-to border").json["position"], border);
  EXPECT_EQ(script.run("where").json["trace"], "backward");
  EXPECT_EQ(script.run("step 3").json["position"], border + 3);
  EXPECT_EQ(script.run("reverse-step 4").json["trace"], "forward");
  EXPECT_EQ(script.run("c").json["stopped"], "end");
  EXPECT_EQ(script.run("where").json["position"], size);
  EXPECT_EQ(script.run("rc").json["stopped"], "start");
}

TEST(DebugScript, StepsOverAComputationOpAtOnce) {
  DebugScript script(openModel(sourcePath("tests/data/models/mlp/model.pt2")));
  EXPECT_EQ(script.run("next").json["position"], 2);  // t and addmm of the first linear
  EXPECT_EQ(script.run("next").json["position"], 3);
  EXPECT_EQ(script.run("reverse-next 2").json["position"], 0);
}

// A count that is far beyond the end leads to the end at once; anything else than a count is refused.
TEST(DebugScript, CountsBeyondTheEndDoNotSpin) {
  DebugScript script(openModel(sourcePath("tests/data/models/mlp/model.pt2")));
  const auto size = script.session().size();
  const auto start = std::chrono::steady_clock::now();
  for (const std::string command : {"next", "step", "step-out"}) {
    EXPECT_EQ(script.run(command + " 1000000000").json["position"], size) << command;
    EXPECT_EQ(script.run("reverse-" + command + " 1e9").json["position"], 0) << command;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(script.run("step 9223372036854775807").json["position"], size);
  EXPECT_EQ(script.run("run-to 9223372036854775807").json["position"], size);
  for (const auto* command :
       {"step 1e30", "step -1", "step 2.5", "step nan", "next 1e19", "reverse-step 9223372036854775808",
        "run-to 99999999999999999999", "break any after 1e30", "break any after -1", "break any after 0.5",
        "what-if budget 1e30", "what-if budget -1"}) {
    try {
      script.run(command);
      ADD_FAILURE() << command;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::badUse) << command;
      const auto* said = std::string_view(command).starts_with("what-if budget") ? "is not a size" : "whole number";
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << command << ": " << error.what();
    }
  }
  EXPECT_EQ(script.run("break any after 1e3").json["where"], "any after 1000");
}

TEST(DebugScript, LongStepsCanBeCancelled) {
  DebugScript script(openModel(sourcePath("tests/data/models/mlp/model.pt2")));
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(script.run("next 100000000000", Progress(source.get_token(), {})), Error);
}

TEST(DebugScript, StepsIntoAndOutInBothDirections) {
  DebugScript script(openModel(sourcePath("tests/data/models/mlp/model.pt2")));
  const auto border = script.session().forwardSize();
  EXPECT_EQ(script.run("step-into").json["position"], 1);
  EXPECT_EQ(script.run("step-out").json["position"], 2);
  EXPECT_EQ(script.run("reverse-step-into").json["position"], 1);
  EXPECT_EQ(script.run("reverse-step-out").json["position"], 0);
  EXPECT_EQ(script.run("step-out").json["position"], border);
  EXPECT_EQ(script.run("reverse-step-out").json["position"], 0);
}

TEST(DebugScript, ShowsWhatItKeepsForSteppingBack) {
  SessionOptions options;
  options.historyBytes = 40000;
  options.threads = 1;
  DebugScript script(tinyGpt(), options);
  EXPECT_EQ(script.run("history").json["entries"], 0);
  script.run("run-to end");
  const auto kept = script.run("history").json;
  EXPECT_LE(kept["bytes"], 40000);
  EXPECT_GT(kept["reruns"], 0);
  EXPECT_EQ(kept["threads"], 1);
}

TEST(DebugScript, SlicesValuesAndShowsTheirGradientsNextToThem) {
  DebugScript script(openModel(sourcePath("tests/data/models/mlp/model.pt2")));
  script.run("run-to end");
  const auto row = script.run("print l1.weight[1, :3]");
  EXPECT_EQ(row.json["contents"]["sizes"], std::vector<int>{3});
  EXPECT_EQ(row.json["contents"]["elements"].size(), 3u);
  const auto whole = script.run("print l1.weight").json["contents"]["elements"];
  EXPECT_EQ(row.json["contents"]["elements"][2], whole[1][2]);
  const auto both = script.run("print both l1.weight[0]").json;
  EXPECT_EQ(both["gradient"]["contents"]["sizes"], both["contents"]["sizes"]);
  EXPECT_EQ(both["gradient"]["contents"]["elements"][0],
            script.run("print grad l1.weight[0, 0]").json["contents"]["elements"]);
  EXPECT_THROW(script.run("print l1.weight[99]"), Error);
}

// Where NaN and infinities are, the first 20 of them.
TEST(DebugScript, PrintNamesThePlacesOfNaN) {
  DebugScript script(openModel(sourcePath("tests/data/planted/log_of_zero.txt")));
  script.run("break a");
  script.run("continue");
  const auto bad = script.run("print planted");
  EXPECT_EQ(bad.json["not_finite"].size(), 20u);
  EXPECT_EQ(bad.json["not_finite"][9]["index"], (std::vector<int>{1, 1}));
  EXPECT_EQ(bad.json["not_finite"][9]["number"], "-inf");
  EXPECT_NE(bad.text.find("-inf at [0, 0], [0, 1]"), std::string::npos) << bad.text;
  EXPECT_NE(bad.text.find("[2, 3], ..."), std::string::npos) << bad.text;
  EXPECT_TRUE(script.run("print w").json["not_finite"].empty());
}

// A script that finds one says so in its exit code.
TEST(DebugScript, WalkNanSaysThatItFoundOne) {
  EXPECT_TRUE(DebugScript(openModel(sourcePath("tests/data/planted/log_of_zero.txt"))).run("walk-nan").bad);
  EXPECT_FALSE(DebugScript(tinyGpt()).run("walk-nan").bad);
}

// Of ops whose backward the file has lost it is not said that their gradient is right.
TEST(DebugScript, ALostBackwardIsNeverRight) {
  DebugScript script(openModel(sourcePath("tests/data/reports/captured/step/model.pt2")));
  const auto gain = script.run("check-gradient mul_");
  EXPECT_EQ(gain.text.find("right"), std::string::npos) << gain.text;
  EXPECT_NE(gain.text.find("Gain"), std::string::npos) << gain.text;
  ASSERT_EQ(gain.json["lost_backwards"].size(), 1u);
  EXPECT_NE(gain.text.find("nothing was checked"), std::string::npos) << "its operand is written to: " << gain.text;
  const auto clip = script.run("check-gradient #8");  // round, in Clip
  EXPECT_FALSE(clip.json["rows"].empty());
  EXPECT_EQ(clip.text.find("right"), std::string::npos) << clip.text;
  EXPECT_TRUE(script.run("check-gradient linear").json["lost_backwards"].empty());
  // The folder has PyTorch's own gradients, which that says nothing of.
  EXPECT_NE(script.run("check-gradient linear").text.find("`retrograd check "), std::string::npos);
  EXPECT_EQ(DebugScript(tinyGpt()).run("check-gradient #0").text.find("`retrograd check "), std::string::npos);
}

// A NaN that a lost backward made is in no value of the file: who looks for it learns where it may be from.
TEST(DebugScript, AWalkThatFindsNothingNamesLostBackwards) {
  DebugScript script(openModel(sourcePath("tests/data/reports/captured/step/model.pt2")));
  const auto walk = script.run("walk-nan");
  EXPECT_FALSE(walk.bad);
  EXPECT_NE(walk.text.find("all values of the run are finite"), std::string::npos) << walk.text;
  EXPECT_NE(walk.text.find("does not hold the backward that PyTorch runs for Gain"), std::string::npos) << walk.text;
  EXPECT_EQ(walk.json["lost_backwards"].size(), 2u);
  EXPECT_EQ(DebugScript(tinyGpt()).run("walk-nan").text, "all values of the run are finite");
}

// What came to an output from outside says so.
TEST(DebugScript, AGradientFromOutsideThatIsBadIsSaidToBe) {
  DerivationRequest request;
  request.cotangents["0"] = test::floatTensor({2}, {std::numeric_limits<float>::infinity(), 1});
  DebugScript script(openModel(test::writeTemporary("outside.txt", R"(
def computation(x, w):
    # x: "f32[2]"
    # w: "f32[2]", parameter
    y = aten.mul.Tensor(x, w)
    return y
)"),
                               request));
  const auto text = script.run("walk-nan").text;
  EXPECT_NE(text.find("root: the input cotangent_0 (1 of 2 elements), a gradient that an output got from outside"),
            std::string::npos)
      << text;
}

// A root that comes from outside has a place and a line, too.
TEST(DebugScript, ARootThatIsAnInputHasItsPlacesAndTheLineThatReadsIt) {
  DerivationRequest request;
  const float infinity = std::numeric_limits<float>::infinity();
  request.inputs["x"] = test::floatTensor({2, 3}, {1, 2, 3, 4, infinity, 6});
  const auto model = test::writeTemporary("bad_input.txt", R"(
def computation(x, w):
    # x: "f32[2, 3]"
    # w: "f32[2, 3]", parameter
    # net.py:4: h = x - x.mean(0)
    m = aten.mean.dim(x, [0], True)
    h = aten.sub.Tensor(x, m)
    # net.py:5: return (h * self.w).sum()
    y = aten.mul.Tensor(h, w)
    loss = aten.sum(y)
    return loss
)");
  const auto analysis = openModel(model, request);
  const auto answer = DebugScript(analysis).run("walk-nan");
  EXPECT_NE(answer.text.find("root: the input x, inf at [1, 1] (1 of 6 elements)"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("net.py:4: h = x - x.mean(0)"), std::string::npos) << answer.text;
  EXPECT_NE(answer.json["line"].get<std::string>().find("net.py:4"), std::string::npos);
  const auto nanFirst = answer.text.find("NaN first at");
  ASSERT_NE(nanFirst, std::string::npos) << answer.text;
  EXPECT_LT(answer.text.find("net.py:4", nanFirst), answer.text.find("root: "));
  CheckOptions options;
  options.reference = test::writeTemporary("bad_input.safetensors", "");
  writeSafetensors(options.reference, {{"in.x", request.inputs["x"]}}, {});
  const auto report = checkModel(model, options);
  EXPECT_EQ(decide(report).reason.find("Inf comes in with the input x, inf at [1, 1] (1 of 6 elements)"), 0U)
      << decide(report).reason;
}

TEST(DebugScript, SavesValues) {
  DebugScript script(openModel(sourcePath("tests/data/models/mlp/model.pt2")));
  script.run("run-to end");
  const auto path = testing::TempDir() + "grad.safetensors";
  script.run("save-value grad l1.weight[:2] " + path);
  const auto file = readSafetensors(path);
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors.begin()->second.meta.sizes[0], 2);
  script.run("save-value l1.weight " + testing::TempDir() + "weight.npy");
  EXPECT_GT(std::filesystem::file_size(testing::TempDir() + "weight.npy"), 128u);
  EXPECT_THROW(script.run("save-value l1.weight weight.txt"), Error);
  EXPECT_THROW(script.run("save-value l1.weight"), Error);
}

TEST(DebugScript, BreakpointsWatchesAndValues) {
  DebugScript script(openModel(sourcePath("tests/data/models/mlp/model.pt2")));
  script.run("break tanh");
  script.run("break kind mm if norm > 1e9");
  EXPECT_EQ(script.run("breakpoints").json["breakpoints"].size(), 2u);
  script.run("watch linear_1");
  const auto stop = script.run("continue");
  EXPECT_EQ(stop.json["breakpoint"], 1);
  EXPECT_EQ(stop.json["next"]["op"], "torch.ops.aten.tanh.default");
  EXPECT_TRUE(stop.json["watches"][0]["present"]);
  const auto printed = script.run("print linear_1");
  EXPECT_EQ(printed.json["contents"]["sizes"], (std::vector<int>{4, 16}));
  EXPECT_EQ(printed.json["contents"]["elements"].size(), 4u);
  EXPECT_NE(printed.text.find("["), std::string::npos);
  EXPECT_EQ(script.run("print tanh").json["reason"], "not computed yet");
  script.run("set linear_1 0");
  script.run("step");
  EXPECT_EQ(script.run("print tanh").json["statistics"]["norm"], 0.0);
  const auto disabled = script.run("disable 1").json["breakpoints"][0];
  EXPECT_EQ(disabled["hits"], 1);
  EXPECT_EQ(disabled["enabled"], false);
  script.run("reverse-step 3");
  EXPECT_EQ(script.run("step 4").json["stopped"], "step");  // past it
  script.run("reverse-step 3");
  script.run("enable 1");
  EXPECT_EQ(script.run("step 4").json["stopped"], "breakpoint");
  EXPECT_THROW(script.run("disable 3"), Error);
  script.run("delete 1");
  EXPECT_EQ(script.run("continue").json["stopped"], "end");
  EXPECT_EQ(script.run("print grad l1.weight").json["contents"]["dtype"], "float32");
  EXPECT_EQ(script.run("histogram grad l1.weight").json["histogram"].size(), 16u);
  std::int64_t counted = 0;
  const auto magnitudes = script.run("magnitudes grad l1.weight").json;
  for (const auto& cell : magnitudes["magnitudes"]) counted += cell["count"].get<std::int64_t>();
  EXPECT_EQ(counted, magnitudes["statistics"]["elements"].get<std::int64_t>());
}

TEST(DebugScript, AnswersWhy) {
  DebugScript script(openModel(sourcePath("tests/data/models/mlp/model.pt2")));
  const auto saved = script.run("why-saved tanh").json;
  EXPECT_TRUE(saved["saved"]);
  EXPECT_EQ(saved["readers"].size(), 2u);
  EXPECT_TRUE(saved["recompute"]["possible"]);
  EXPECT_FALSE(script.run("why-no-gradient l1.weight").json["gradient"].is_null());
  const auto origin = script.run("origin tanh").json;
  EXPECT_EQ(origin["derived"].size(), 2u);
  EXPECT_EQ(origin["forward"]["op"], "torch.ops.aten.tanh.default");
  EXPECT_FALSE(script.run("walk-nan").json["bad"]);
}

TEST(DebugScript, MemoryIsTheTimeline) {
  const auto analysis = tinyGpt();
  DebugScript script(analysis);
  const auto memory = script.run("memory").json;
  EXPECT_EQ(memory["peak_bytes"], memoryTimeline(*analysis).peakBytes);
  EXPECT_EQ(memory["timeline"].size(), analysis->joint.ops.size());
}

TEST(WhatIf, IsTheReSplitItself) {
  const auto analysis = tinyGpt();
  for (const char* what : {"all", "blocks.0", "blocks.1.attention"}) {
    PartitionOptions partition;
    partition.recompute = {what};
    const auto predicted = whatIf(*analysis, partition);
    DerivationRequest options;
    options.partition = partition;
    const auto really = openModel(sourcePath("resources/samples/tiny_gpt.pt2"), options);
    EXPECT_EQ(predicted.after.savedBytes, savedBytes(*really->document, really->joint).storages) << what;
    EXPECT_EQ(predicted.after.peakBytes, memoryTimeline(*really).peakBytes) << what;
    EXPECT_LT(predicted.after.savedBytes, predicted.before.savedBytes) << what;
    EXPECT_GT(predicted.after.recomputedOps, 0u);
    EXPECT_FALSE(predicted.measured);
    EXPECT_GT(predicted.extraSeconds, 0);
  }
  Session session(analysis);
  session.runTo(session.size());
  PartitionOptions all;
  all.recompute = {"all"};
  EXPECT_TRUE(whatIf(*analysis, all, session.measures()).measured);
}

TEST(DebugScript, WrongWordsAreDistinguishedFromRightOnes) {
  DebugScript script(tinyGpt());
  for (const char* line : {"jump", "print", "print nothing", "run-to nowhere", "delete 3", "what-if fly", "step x",
                           "set tokens", "break", "walk-nan nothing"})
    EXPECT_THROW(script.run(line), Error) << line;
  EXPECT_TRUE(script.run("").text.empty());
  EXPECT_TRUE(script.run("# a comment").text.empty());
  const auto help = script.run("help").text;
  for (const auto& [usage, what] : DebugScript::commands()) EXPECT_NE(help.find(usage), std::string::npos);
}

}  // namespace
}  // namespace retrograd::test
