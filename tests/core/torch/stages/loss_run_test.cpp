// Stages and whole models whose gradient begins at a loss.
#include "core/cut/loss.h"
#include "core/torch/opening/open_model.h"

#include <gtest/gtest.h>

#include "core/cut/as_read.h"
#include "core/torch/experiments/counterpart.h"
#include "core/torch/judging/compare.h"
#include "core/torch/reading/read_model.h"
#include "core/torch/reading/session_file.h"
#include "tests/core/cut/cut_files.h"
#include "tests/core/cut/text_models.h"
#include "tests/support/open_model.h"

namespace retrograd {
namespace {

using test::at;
using test::derived;
using test::expectEqual;
using test::opened;
using test::openedText;
using test::refusalOf;

// Holds P46: stages that do not reach the loss get no gradient.
// Holds P51: nor does an output that a later stage uses and the loss does not depend on.
// Holds P48: the loss has an implicit gradient of 1.
// Holds P10: a loss can be asked for wherever stages are derived.
TEST(PipelineRun, OnlyWhatReachesTheLossIsDifferentiated) {
  const char* text = R"(
def computation(x, w, u):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    # u: "f32[4, 4]", parameter u
    a = aten.mm(x, w)
    p = aten.sin(a)
    b = aten.mm(x, u)
    q = aten.detach(p)
    r = aten.mul.Tensor(b, q)
    loss = aten.sum(r)
    s = aten.cos(p)
    return loss, s
)";
  auto request = at({"#b", "#q", "#s"});
  request.loss = "(True, False)";
  expectEqual(text, request);
  const auto pipeline = derived(openedText(text, request));
  EXPECT_TRUE(pipeline.stages[0]->backward.ops.empty()) << "p is only used without its gradient";
  EXPECT_FALSE(pipeline.stages[1]->backward.ops.empty());
  EXPECT_TRUE(pipeline.stages[3]->backward.ops.empty());
  const auto result = runPipeline(pipeline);
  EXPECT_FALSE(result.gradients.contains("p.w"));
  EXPECT_TRUE(result.gradients.contains("p.u"));
  request.loss = "s";
  EXPECT_NE(refusalOf(text, request).find("grad can be implicitly created only for scalar outputs"), std::string::npos);
}

constexpr const char* lossAndMore = R"(
def computation(x, w, u):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    # u: "f32[4, 4]", parameter u
    a = aten.mm(x, w)
    s = aten.cos(a)
    b = aten.mm(x, u)
    loss = aten.sum(b)
    return s, loss
)";

// Holds P46, P48: a model opened for a loss has its gradient alone, and so have the stages that are cut of it.
TEST(PipelineRun, AModelIsOpenedForItsLoss) {
  const auto path = test::writeTemporary("loss.txt", lossAndMore);
  const auto open = [&](const std::string& loss) {
    OpenRequest request;
    request.path = path;
    request.loss = loss;
    return openModel(request);
  };
  EXPECT_EQ(open("")->request.cotangents.size(), 2u) << "at all outputs";
  const auto analysis = open("loss");
  ASSERT_TRUE(analysis->derived());
  ASSERT_EQ(analysis->request.cotangents.size(), 1u);
  const auto& seed = analysis->request.cotangents.at("1");
  EXPECT_EQ(*reinterpret_cast<const float*>(seed.data), 1.0f);
  auto model = asRead(*analysis);
  auto split = splitPipeline(*model.document, model.computation, pointCuts(model, at({"#b"})));
  const auto pipeline = derivePipeline(std::move(model), analysis, std::move(split));
  EXPECT_TRUE(pipeline.stages[0]->backward.ops.empty());
  const auto gradients = runPipeline(pipeline).gradients;
  EXPECT_FALSE(gradients.contains("p.w"));
  EXPECT_TRUE(gradients.contains("p.u"));
  Counterpart again;
  again.seed = 3;
  EXPECT_EQ(openCounterpart(*analysis, again)->request.cotangents.size(), 1u)
      << "compared with another seed, it begins at the loss there too";
  EXPECT_THROW(open("s"), Error);
  EXPECT_THROW(open("lost"), Error);
}

// Holds P46, P48: a session file keeps what else it was saved with.
TEST(PipelineRun, ASessionIsOpenedForItsLoss) {
  DerivationRequest options;
  options.seed = 5;
  const auto saved = openModel(test::writeTemporary("loss.txt", lossAndMore), options);
  const auto path = test::writeTemporary("loss.retrograd", "");
  SaveSessionOptions withWeights;
  withWeights.embed = true;
  saveSession(*saved, path, withWeights);
  OpenRequest request;
  request.path = path;
  EXPECT_EQ(openModel(request)->request.cotangents.size(), 2u);
  request.loss = "loss";
  const auto analysis = openModel(request);
  ASSERT_EQ(analysis->request.cotangents.size(), 1u);
  EXPECT_EQ(analysis->request.seed, 5u);
  EXPECT_EQ(analysis->sessionPath, path);
  EXPECT_TRUE(identical(analysis->request.inputs.at("x"), saved->request.inputs.at("x")));
  request.order = 2;
  EXPECT_THROW(openModel(request), Error);
}

// Holds P7: TrivialLossWrapper, once exported, is a model that returns its loss and nothing else. Every way to name
// that output is the same, and so is naming none, where PyTorch makes no backward. Holds P48: the gradient of the loss
// is 1, so that of w is x.
TEST(PipelineRun, AModelThatReturnsItsLossNeedsNoSpecification) {
  const char* text = R"(
def computation(x, target, w):
    # x: "f32[4]"
    # target: "f32[4]"
    # w: "f32[4]", parameter w
    a = aten.mul.Tensor(x, w)
    b = aten.sub.Tensor(a, target)
    c = aten.sum(b)
    return c
)";
  for (const auto* loss : {"", "True", "(True,)", "[True]", "0", "c"}) {
    auto request = at({"#b"});
    request.loss = loss;
    const auto pipeline = derived(openedText(text, request));
    for (const auto& stage : pipeline.stages) EXPECT_FALSE(stage->backward.ops.empty()) << loss;
    EXPECT_TRUE(identical(runPipeline(pipeline).gradients.at("p.w"), pipeline.whole->request.inputs.at("x"))) << loss;
  }
}

// Holds P9: the loss of a file is found along what forward returned, here a dictionary, not in the graph's flat tuple.
TEST(PipelineRun, TheLossOfAFileIsFoundAlongWhatForwardReturned) {
  const auto model = (test::data() / "multi_output" / "model.pt2").string();
  auto request = at({"#var"});
  for (const auto* loss :
       {"{'a': False, 'v': False, 'i': False, 'pair': (False, True), 'const': False, 'alias': False, 'none': False}",
        "pair.1"}) {
    request.loss = loss;
    const auto cotangents = opened(model, request).whole->request.cotangents;
    ASSERT_EQ(cotangents.size(), 1u) << loss;
    EXPECT_EQ(cotangents.begin()->first, "4") << "the fifth of the file's eight results";
  }
  const std::pair<const char*, const char*> refused[] = {
      {"{'pair': (False, True)}", "must match keys"},
      {"(False, True)", "must match type"},
      {"const", "must specify a dynamic value but got"},
      {"v", "grad can be implicitly created only for scalar outputs"}};
  for (const auto& [loss, why] : refused) {
    request.loss = loss;
    const auto error = test::errorOf([&] { opened(model, request); });
    EXPECT_NE(error.find(why), std::string::npos) << loss << ": " << error;
  }
}

}  // namespace
}  // namespace retrograd
