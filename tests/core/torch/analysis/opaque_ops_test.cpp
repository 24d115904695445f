// Opaque ops: shown and never run, with what depends on them left out, and nothing else wrong.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "core/formats/text/text_trace.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/checking/check.h"
#include "core/torch/judging/compare.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/session/session.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/print/printer.h"
#include "tests/support/report_text.h"

namespace retrograd::test {
namespace {

/// `a` reaches the second output only through the opaque op, `b` the first alone, `c` both.
const std::string model = R"(
def computation(x, a, b, c):
    # x: "f32[2, 3]"
    # a: "f32[3]", parameter
    # b: "f32[3]", parameter
    # c: "f32[3]", parameter
    p = aten.mul.Tensor(x, a)
    q = torch.ops.mine.mix.default(p, c, 3)  # q: "f32[2, 3]"
    u = aten.mul.Tensor(x, b)
    v = aten.mul.Tensor(u, c)
    w = aten.mul.Tensor(q, c)
    return (v, w)
)";

std::shared_ptr<const Analysis> opened(const std::string& text, const DerivationRequest& request = {}) {
  return analyse(readTextModel(text, "opaque.txt", lookupSymbol), request);
}

TensorData tensor(std::vector<std::int64_t> sizes, float first) {
  TensorMeta meta;
  meta.dtype = DType::f32;
  meta.strides = contiguousStrides(sizes);
  meta.sizes = std::move(sizes);
  auto memory = std::make_shared<std::vector<float>>(meta.elements());
  for (std::size_t i = 0; i < memory->size(); ++i) (*memory)[i] = first + 0.25f * static_cast<float>(i);
  return {meta, reinterpret_cast<const std::byte*>(memory->data()), memory->size() * 4, memory};
}

std::string writeText(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / name;
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(text.c_str(), file);
  std::fclose(file);
  return path.string();
}

TEST(OpaqueOps, whatDoesNotDependOnThemWorks) {
  const auto analysis = opened(model);
  ASSERT_TRUE(analysis->derived());
  EXPECT_NE(printTrace(*analysis->document, analysis->forward).find("torch.ops.mine.mix.default(p, c, 3)"),
            std::string::npos);
  const auto run = runJoint(*analysis);
  EXPECT_TRUE(run.outputs.at(0));
  EXPECT_FALSE(run.outputs.at(1));
  EXPECT_TRUE(run.gradients.contains("p.b"));
  EXPECT_FALSE(run.gradients.contains("p.a"));
  EXPECT_FALSE(run.gradients.contains("p.c"));
  EXPECT_FALSE(run.gradients.contains("in.x"));
  const auto split = runSplit(*analysis);
  EXPECT_TRUE(identical(split.gradients.at("p.b"), run.gradients.at("p.b")));
  const auto eager = runEager(*analysis);
  EXPECT_TRUE(identical(eager.gradients.at("p.b"), run.gradients.at("p.b")));
}

TEST(OpaqueOps, gradientsThroughThemAreRefusedByName) {
  const auto analysis = opened(model);
  std::string names;
  for (const auto& [input, op] : analysis->refusedGradients) {
    names += analysis->computation().inputs[input].name + " ";
    EXPECT_EQ(analysis->document->opName(op), "torch.ops.mine.mix.default");
  }
  EXPECT_EQ(names, "x a c ");  // c has a part that does not pass through it, too: a sum that lacks a part is not shown
  bool said = false;
  for (const auto& problem : analysis->problems)
    said |= problem.place == "torch.ops.mine.mix.default" && problem.message.find("x, a, c") != std::string::npos;
  EXPECT_TRUE(said);
}

TEST(OpaqueOps, resultsCanBeFilledIn) {
  DerivationRequest request;
  request.filled["q"] = tensor({2, 3}, 0.5f);
  const auto analysis = opened(model, request);
  const auto run = runJoint(*analysis), eager = runEager(*analysis);
  ASSERT_TRUE(run.outputs.at(1) && eager.outputs.at(1));
  EXPECT_TRUE(identical(*run.outputs[1], *eager.outputs[1]));
  EXPECT_FALSE(run.gradients.contains("p.c"));
  request.filled["q"] = tensor({3, 2}, 0.5f);
  EXPECT_THROW(opened(model, request), Error);
  request.filled = {{"p", tensor({2, 3}, 0.5f)}};
  try {
    opened(model, request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("they have q"), std::string::npos) << error.what();
  }
}

TEST(OpaqueOps, stepsPassOverThem) {
  const auto analysis = opened(model);
  Session session(analysis);
  session.runTo(session.size());
  const auto w = analysis->computation().outputs[1].value;
  EXPECT_FALSE(session.state(w).present);
  EXPECT_NE(session.state(w).reason.find("mine.mix"), std::string::npos);
  while (session.position() > 0) session.stepBack();
  session.runTo(session.size());
  EXPECT_TRUE(session.gradients().contains("p.b"));
}

TEST(OpaqueOps, aFilledResultSurvivesWritesAndWayBack) {
  const std::string text = R"(
def computation(x, b):
    # x: "f32[2, 3]"
    # b: "f32[3]", parameter
    q = torch.ops.mine.mix.default(x)  # q: "f32[2, 3]"
    r = aten.mul_.Tensor(q, b)
    return (r,)
)";
  DerivationRequest request;
  request.filled["q"] = tensor({2, 3}, 1.f);
  request.gradInputs.emplace();
  const auto analysis = opened(text, request);
  ASSERT_TRUE(analysis->derived());
  Session session(analysis);
  session.runTo(session.size());
  const auto first = *session.results().at(0);
  while (session.position() > 0) session.stepBack();
  session.runTo(session.size());
  EXPECT_TRUE(identical(first, *session.results().at(0)));
  EXPECT_TRUE(identical(first, *runEager(*analysis).outputs.at(0)));
}

TEST(OpaqueOps, whatTheyMayHaveWrittenIsLeftOut) {
  const auto analysis = opened(R"(
def computation(x, b):
    # x: "f32[3]"
    # b: "f32[3]", parameter
    p = aten.mul.Tensor(x, b)
    before = aten.sum.default(p)
    torch.ops.mine.scale_.default(p, 2.0)
    after = aten.sum.default(p)
    return (before, after)
)");
  const auto run = runJoint(*analysis);
  EXPECT_TRUE(run.outputs.at(0));
  EXPECT_FALSE(run.outputs.at(1));
  EXPECT_TRUE(run.gradients.empty());
  EXPECT_EQ(analysis->refusedGradients.size(), 2u);
}

TEST(OpaqueOps, checkSaysWhatIsLeftOut) {
  CheckOptions options;
  const auto report = checkModel(writeText("opaque_check.txt", model), options);
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << decide(report).reason;
  EXPECT_NE(test::findClaim(report, "opaque-ops"), nullptr);
  for (const auto* name : {"grad.in.x", "grad.p.a", "grad.p.c", "out.1"})
    EXPECT_NE(test::findClaim(report, "left-out", name), nullptr) << name;
  EXPECT_NE(test::textOf(report).find("mine.mix.default"), std::string::npos);
  options.filled["q"] = tensor({2, 3}, 0.5f);
  const auto filled = checkModel(writeText("opaque_check.txt", model), options);
  for (const auto* name : {"grad.in.x", "grad.p.a", "grad.p.c"})
    EXPECT_NE(test::findClaim(filled, "left-out", name), nullptr) << name;
  EXPECT_EQ(test::findClaim(filled, "left-out", "out.1"), nullptr);
}

TEST(OpaqueOps, aCheckThatComparesNothingIsASkip) {
  const auto report = checkModel(writeText("opaque_all.txt", R"(
def computation(x):
    # x: "f32[3]"
    q = torch.ops.mine.mix.default(x)  # q: "f32[3]"
    r = aten.sin.default(q)
    return r
)"),
                                 {});
  EXPECT_EQ(test::verdictOf(report), Verdict::notPossible);
  EXPECT_NE(test::findClaim(report, "opaque-ops"), nullptr);
}

TEST(OpaqueOps, sessionsKeepWhatWasFilledIn) {
  DerivationRequest request;
  request.filled["q"] = tensor({2, 3}, 0.5f);
  const auto analysis = analyse(readTextModel(model, writeText("opaque_session.txt", model), lookupSymbol), request);
  const auto path = (std::filesystem::temp_directory_path() / "opaque.retrograd").string();
  SaveSessionOptions save;
  save.embed = true;
  saveSession(*analysis, path, save);
  const auto again = loadSession(path);
  ASSERT_TRUE(again->leftOut);
  EXPECT_TRUE(identical(*runJoint(*again).outputs.at(1), *runJoint(*analysis).outputs.at(1)));
  EXPECT_EQ(again->request.filled.size(), 1u);
}

TEST(OpaqueOps, shapesThatTheyDecideAreRefusedByName) {
  const auto analysis = opened(R"(
def computation(x):
    # x: "f32[3]"
    n = torch.ops.mine.count.default(x)
    y = aten.sin.default(n)
    return y
)");
  EXPECT_FALSE(analysis->derived());
  bool said = false;
  for (const auto& problem : analysis->problems)
    said |= problem.message.find("mine.count") != std::string::npos && problem.severity == Problem::Severity::error;
  EXPECT_TRUE(said);
}

TEST(OpaqueOps, secondDerivativesOfTheRest) {
  DerivationRequest request;
  request.order = 2;
  const auto analysis = opened(model, request);
  ASSERT_TRUE(analysis->derived()) << analysis->problems.back().message;
  EXPECT_TRUE(runJoint(*analysis).gradients.contains("p.b"));
  EXPECT_FALSE(runJoint(*analysis).gradients.contains("p.c"));
}

}  // namespace
}  // namespace retrograd::test
