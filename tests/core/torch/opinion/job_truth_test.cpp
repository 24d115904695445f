// Jobs whose gradients are right by eager PyTorch, and one whose are not (tests/data/jobs/make.py): what the second
// opinion says of them, and of the same logs with a fault planted in the backward.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/torch/analysis/joint_run.h"
#include "core/torch/judging/judge.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/opinion/second_opinion.h"
#include "tests/core/formats/cases.h"
#include "tests/core/torch/opinion/sample_job.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"

namespace retrograd {
namespace {

std::string textOf(const std::string& name) { return test::contentOf(sourcePath("tests/data/jobs/" + name + ".log")); }

SecondOpinion opinionOn(const std::string& text, const SecondOpinionRequest& request = {}) {
  return secondOpinion(jobs::openJobLog(test::writeTemporary("job.log", text)), request);
}

/// The reasons of the verdict, for a test that fails.
std::string reasonsOf(const SecondOpinion& opinion) {
  auto text = reasonOf(opinion);
  for (const auto& claim : opinion.report.claims)
    if (!claim.good()) text += "; " + claim.sentence;
  for (const auto& note : opinion.report.notes) text += "; note: " + note;
  return text;
}

/// The log with `from` replaced by `to` at its first place behind `mark`.
std::string edited(std::string text, const std::string& mark, const std::string& from, const std::string& to) {
  const auto begin = text.find(mark);
  EXPECT_NE(begin, std::string::npos) << mark;
  const auto at = text.find(from, begin);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

const std::string ofBackward = "\"aot_backward_graph\"";

// scanned, mapped: loops run from logs. stepped: the derived forward passes no gradient on, and the backward that
// its author wrote takes one all the same. tworesults: the tangent is that of the first of two results of one type.
// normzero, zeroed: derived from decomposed ops a gradient is NaN, or None, where that of autograd's formula is 0.
class RightJob : public testing::TestWithParam<const char*> {};

TEST_P(RightJob, Agrees) {
  const auto opinion = opinionOn(textOf(GetParam()));
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonsOf(opinion);
  EXPECT_GT(opinion.report.judged, 0U);
}

// A product becomes a sum: a gradient of it is another.
TEST_P(RightJob, WithAPlantedFaultDoesNotAgree) {
  const auto opinion = opinionOn(edited(textOf(GetParam()), ofBackward, "aten.mul.Tensor(", "aten.add.Tensor("));
  EXPECT_EQ(verdictOf(opinion), Verdict::fail) << reasonsOf(opinion);
}

INSTANTIATE_TEST_SUITE_P(JobTruth, RightJob,
                         testing::Values("nograd", "both", "detach", "nogradwrite", "innergrad", "gumbel", "ste",
                                         "ckdrop", "ck2", "seeds", "ckdynamic", "drawdetach", "scanned", "mapped",
                                         "stepped", "jagged", "drawdouble", "tworesults", "datapart", "normzero",
                                         "zeroed", "detachinplace"),
                         [](const auto& info) { return std::string(info.param); });

// With an activation memory budget of 0 the partitioner drew the dropout's mask once more, from no saved state.
TEST(JobTruth, ADrawThatNothingTiesIsNamedAndNeverAgrees) {
  const auto opinion = opinionOn(textOf("budget"));
  ASSERT_EQ(verdictOf(opinion), Verdict::fail) << reasonsOf(opinion);
  const auto& fault = faultOf(opinion);
  EXPECT_NE(fault.sentence.find("random numbers of its own"), std::string::npos) << fault.sentence;
  EXPECT_NE(fault.sentence.find("from native_dropout (torch.ops.aten.native_dropout.default), line "),
            std::string::npos)
      << fault.sentence;
  EXPECT_GT(opinion.places.front().line, 0);
  EXPECT_NE(fault.line.find("make.py:20"), std::string::npos) << fault.line;
}

// Names tie nothing: a draw from seeds that the backward makes itself is another one, also under the name that the
// forward's has.
TEST(JobTruth, SeedsOfTheBackwardsOwnAreOtherDraws) {
  const auto opinion = opinionOn(edited(textOf("seeds"), ofBackward,
                                        "torch.ops.higher_order.run_with_rng_state(rng_state_output_0, "
                                        "torch.ops.prims.inductor_seeds.default, ",
                                        "torch.ops.prims.inductor_seeds.default("));
  ASSERT_EQ(verdictOf(opinion), Verdict::fail) << reasonsOf(opinion);
  EXPECT_NE(reasonOf(opinion).find("inductor_random_default"), std::string::npos) << reasonOf(opinion);
}

// Another of the forward's seeds, and another op from its state, are other draws.
TEST(JobTruth, AnotherSeedOrOpIsAnotherDraw) {
  const auto seed = edited(textOf("seeds"), ofBackward, "inductor_lookup_seed.default(run_with_rng_state, 0)",
                           "inductor_lookup_seed.default(run_with_rng_state, 1)");
  EXPECT_EQ(verdictOf(opinionOn(seed)), Verdict::fail);
  const auto chance =
      edited(textOf("ckdrop"), ofBackward, "native_dropout.default, tanh, 0.5", "native_dropout.default, tanh, 0.4");
  EXPECT_EQ(verdictOf(opinionOn(chance)), Verdict::fail);
}

/// The checkpointed dropout in the form of a GPU: both graphs have a generator, and the runtime keeps the two in step.
std::string withGenerators(const std::string& backwards) {
  const std::string ofForward = "\"aot_forward_graph\"", op = "torch.ops.aten.native_dropout.default, tanh, 0.5, True";
  auto text = textOf("ckdrop");
  text = edited(text, ofForward, "PlainAOTInput(idx=2)\n", "PlainAOTInput(idx=2)\n\t        fwd_rng_state_0,\n");
  text = edited(text, ofForward, "torch.ops.higher_order.run_and_save_rng_state(" + op,
                "torch.ops.higher_order.graphsafe_run_with_rng_state(" + op + ", rng_state = fwd_rng_state_0");
  text = edited(text, ofForward, "getitem_2: \"u8[s21][1]cpu\" = run_and_save_rng_state[0]",
                "getitem_2: \"f32[6][1]cpu\" = torch.ops.aten.sin.default(primals_3)");
  text = edited(text, ofForward, "getitem_3[0];  getitem_3 = None", "run_and_save_rng_state[0]");
  text = edited(text, ofForward, ", getitem_2)", ")");
  text = edited(text, ofBackward, ";  rng_state_output_0 = None", "");
  text = edited(text, ofBackward, "rng_state_output_0: \"u8[s21][1]cpu\",", backwards + ",");
  return edited(text, ofBackward, "torch.ops.higher_order.run_with_rng_state(rng_state_output_0, " + op,
                "torch.ops.higher_order.graphsafe_run_with_rng_state(" + op + ", rng_state = " + backwards);
}

TEST(JobTruth, GeneratorsOfBothGraphsAreTied) {
  const auto opinion = opinionOn(withGenerators("bwd_rng_state_0"));
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonsOf(opinion);
  EXPECT_EQ(verdictOf(opinionOn(withGenerators("bwd_rng_state_1"))), Verdict::fail);
}

// A draw like a tensor asks for its type alone: in the backward that tensor may be another, as one that is computed
// from a draw of the backward's own.
TEST(JobTruth, ADrawLikeAnotherTensorOfTheTypeIsTied) {
  const std::string draw =
      "torch.ops.aten.rand.default, [4, 6], dtype = torch.float32, device = device(type='cpu'), pin_memory = False)";
  const auto like = [](const std::string& tensor) { return "torch.ops.aten.rand_like.default, " + tensor + ")"; };
  auto text = edited(textOf("ck2"), "\"aot_forward_graph\"", "run_and_save_rng_state(" + draw,
                     "run_and_save_rng_state(" + like("mm"));
  text = edited(text, ofBackward, "rng_state_output_0, " + draw, "rng_state_output_0, " + like("mul_8"));
  const auto opinion = opinionOn(text);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonsOf(opinion);
}

// A size that is a symbol has another name in each graph, and the same expression.
TEST(JobTruth, DrawsOfASymbolicSizeAreTied) {
  auto text = textOf("seeds");
  const std::string node = "inductor_random_default: ", call = "inductor_random.default([4], ";
  for (const auto& [mark, size] :
       {std::pair{"\"aot_forward_graph\"", "rows"}, std::pair{"\"aot_backward_graph\"", "count"}}) {
    text = edited(text, mark, node,
                  fmt::format("{}: \"Sym(4)\" = torch.ops.aten.sym_size.int(primals_1, 0)\n\t        ", size) + node);
    text = edited(text, mark, call, fmt::format("inductor_random.default([{}], ", size));
  }
  const auto opinion = opinionOn(text);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonsOf(opinion);
}

// A backward of the author's own is not derived: its gradients are compared with the joint graph's.
TEST(JobTruth, ABackwardOfTheAuthorsOwnIsNamed) {
  const auto opinion = opinionOn(textOf("ste"));
  ASSERT_FALSE(opinion.report.notes.empty());
  EXPECT_TRUE(std::any_of(opinion.report.notes.begin(), opinion.report.notes.end(), [](const auto& note) {
    return note.find("backward of its own") != std::string::npos && note.find("make.py:") != std::string::npos;
  })) << reasonsOf(opinion);
}

// The gradient within the function passes a backward of the author's own, which eager PyTorch differentiates once more.
// The compile does not, and its joint graph has the same fault: it is no witness.
TEST(JobTruth, AnOwnBackwardWithinAnInnerGradientIsNeverTakenForRight) {
  const auto opinion = opinionOn(textOf("innerown"));
  ASSERT_EQ(verdictOf(opinion), Verdict::notPossible) << reasonsOf(opinion);
  EXPECT_NE(reasonOf(opinion).find("passes a backward of the program's own"), std::string::npos) << reasonOf(opinion);
  EXPECT_NE(reasonOf(opinion).find("make.py:"), std::string::npos) << reasonOf(opinion);
}

// The job and the derived backward have the same NaN, which the forward hides.
TEST(JobTruth, NaNInAGradientIsNotHealthyThoughBothHaveIt) {
  const auto opinion = opinionOn(textOf("nanmask"));
  ASSERT_TRUE(opinion.agrees) << reasonsOf(opinion);
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible) << reasonsOf(opinion);  // of numbers that were drawn
  const auto* bad = test::findClaim(opinion.report, "not-finite");
  ASSERT_NE(bad, nullptr);
  EXPECT_NE(bad->subject.find("primals_"), std::string::npos);
  const auto* root = test::findClaim(opinion.report, "not-finite-root");
  ASSERT_NE(root, nullptr);
  EXPECT_NE(root->sentence.find("softmax"), std::string::npos) << root->sentence;
}

// A gradient of zeros is that of round(), which is what the forward's ops say; the author's own backward says another.
TEST(JobTruth, ABackwardThatLostTheAuthorsOwnDiffers) {
  const auto opinion = opinionOn(edited(textOf("ste"), ofBackward, "mul.Tensor(mul_5, 3)", "mul.Tensor(mul_5, 0)"));
  EXPECT_EQ(verdictOf(opinion), Verdict::fail) << reasonsOf(opinion);
}

// What the derived gradients cannot say, those of the joint graph do.
TEST(JobTruth, AFaultWhereTheDerivedGradientIsNotFiniteDiffers) {
  for (const auto& [from, to] : {std::pair{"sub.Tensor(1, mul_10)", "sub.Tensor(1, tanh)"},
                                 std::pair{"eq.Scalar(alias_2, 0)", "eq.Scalar(alias_2, 1)"}})  // NaN, as derived
    EXPECT_EQ(verdictOf(opinionOn(edited(textOf("normzero"), ofBackward, from, to))), Verdict::fail) << from;
  const auto nonzero = edited(textOf("zeroed"), ofBackward, "mm.default(permute, full)", "mm.default(permute, mul_1)");
  EXPECT_EQ(verdictOf(opinionOn(nonzero)), Verdict::fail);
}

/// Without the record of the joint graph.
std::string withoutJoint(std::string text) {
  const auto begin = text.rfind("V1126", text.find("\"aot_joint_graph\""));
  return text.erase(begin, text.rfind("V1126", text.find("\"aot_forward_graph\"")) - begin);
}

TEST(JobTruth, WithoutAJointGraphWhatIsNotFiniteIsNotJudged) {
  const auto opinion = opinionOn(withoutJoint(textOf("normzero")));
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible) << reasonsOf(opinion);
  EXPECT_NE(reasonOf(opinion).find("norm of zeros"), std::string::npos) << reasonOf(opinion);
}

// A mask drops what the fault moves, in half of the draws.
TEST(JobTruth, OneDrawHidesNoFault) {
  const auto fault = edited(textOf("dropped"), ofBackward, "aten.cos.default(mm)", "aten.sin.default(mm)");
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SecondOpinionRequest request;
    request.seed = seed;
    EXPECT_EQ(verdictOf(opinionOn(textOf("dropped"), request)), Verdict::pass) << seed;
    EXPECT_EQ(verdictOf(opinionOn(fault, request)), Verdict::fail) << seed;
  }
}

/// Without the record of Dynamo's graph.
std::string withoutDynamo(std::string text) {
  const auto begin = text.rfind("V1126", text.find("\"dynamo_output_graph\""));
  return text.erase(begin, text.rfind("V1126", text.find("\"aot_joint_graph\"")) - begin);
}

TEST(JobTruth, WithoutDynamosGraphTheCutsAreNotKnown) {
  const auto opinion = opinionOn(withoutDynamo(textOf("nograd")));
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible) << reasonsOf(opinion);
  EXPECT_NE(reasonOf(opinion).find("no Dynamo graph"), std::string::npos) << reasonOf(opinion);
  const auto fault = edited(withoutDynamo(textOf("nograd")), ofBackward, "aten.mul.Tensor(", "aten.add.Tensor(");
  EXPECT_EQ(verdictOf(opinionOn(fault)), Verdict::fail);
}

/// The gradients of a job by the names of a reference.
SecondOpinionRequest withReference(const std::string& name) {
  const auto imported = opinionOn(textOf(name)).imported;
  SecondOpinionRequest request;
  request.reference.emplace();
  for (const auto& [input, gradient] : imported)
    (*request.reference)["grad." + std::string(input == "primals_1"   ? "x"
                                               : input == "primals_2" ? "w"
                                                                      : "b")] = gradient;
  return request;
}

using Parting = SecondOpinion::Parting;

TEST(JobTruth, TheReferenceSaysWhichOfTheThreeParts) {
  auto request = withReference("nograd");
  ASSERT_EQ(request.reference->size(), 3U);
  auto opinion = opinionOn(textOf("nograd"), request);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonsOf(opinion);
  EXPECT_EQ(referenced(opinion), 3U);
  EXPECT_EQ(opinion.parting, Parting::none);

  const auto fault = edited(textOf("nograd"), ofBackward, "aten.mul.Tensor(", "aten.add.Tensor(");
  opinion = opinionOn(fault, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::fail);
  EXPECT_EQ(opinion.parting, Parting::job);

  // Dynamo's graph says that autograd recorded all: the derived gradients are others than the job's and the
  // reference's.
  const auto lying =
      edited(textOf("nograd"), "\"dynamo_output_graph\"", "_set_grad_enabled(False)", "_set_grad_enabled(True)");
  EXPECT_EQ(verdictOf(opinionOn(lying)), Verdict::fail);
  opinion = opinionOn(lying, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible) << reasonsOf(opinion);
  EXPECT_EQ(opinion.parting, Parting::derived);

  (*request.reference)["grad.x"] = (*request.reference)["grad.w"];
  opinion = opinionOn(textOf("nograd"), request);
  EXPECT_EQ(verdictOf(opinion), Verdict::fail);
  EXPECT_EQ(opinion.parting, Parting::reference);
}

// A reference of a GPU was computed with TF32; the job's backward is compared as closely as ever.
TEST(JobTruth, AReferenceOfConvolutionsOnAGpuIsComparedAsTf32Rounds) {
  const auto job = test::cases() / "gpu" / "jobs" / "conv_last";
  if (!std::filesystem::exists(job)) GTEST_SKIP() << "the samples are not beside this checkout";
  auto request = requestOf(job);
  const auto log = jobs::openJobLog((job / "trace").string());
  const auto opinion = secondOpinion(log, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonsOf(opinion);
  EXPECT_EQ(referenced(opinion), 11U);
  request.reference->at("grad.8.weight") = request.reference->at("grad.4.weight");
  EXPECT_EQ(verdictOf(secondOpinion(log, request)), Verdict::fail);
}

// A model that is run, debugged or shown has the same cuts.
TEST(JobTruth, TheModelOfALogIsCutWhereAutogradCutIt) {
  for (const auto* name : {"nograd", "detach", "nogradwrite", "innergrad"}) {
    SecondOpinionRequest request;
    for (const auto& [input, gradient] : opinionOn(textOf(name)).imported)  // some values of the inputs' types
      request.batch[input == "primals_1" ? "x" : input == "primals_2" ? "w" : "b"] = gradient;
    request.useWhatBinds = true;
    const auto expected = opinionOn(textOf(name), request);
    DerivationRequest derivation;
    derivation.inputs = request.batch;
    const auto analysis = openModel(test::writeTemporary("model.log", textOf(name)), derivation);
    const auto results = namedResults(*analysis, runJoint(*analysis));
    Judge judge(analysis);
    for (const auto& [input, gradient] : expected.imported) {
      const auto ours = "grad.in." + std::string(input == "primals_1" ? "x" : input == "primals_2" ? "w" : "b");
      ASSERT_TRUE(results.contains(ours)) << name << " " << ours;
      const auto verdict = judge.compare(ours, results.at(ours), gradient);
      EXPECT_TRUE(verdict.good()) << name << " " << ours << ": " << verdict.deviation;
    }
  }
}

bool warnsOf(const std::string& text, const std::string& what) {
  const auto problems = openModel(test::writeTemporary("model.log", text))->file.problems;
  return std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
    return problem.severity == Problem::Severity::warning && problem.message.find(what) != std::string::npos;
  });
}

TEST(JobTruth, TheModelOfALogWarnsOfWhatItDoesNotKnow) {
  EXPECT_TRUE(warnsOf(textOf("ste"), "backward of its own"));
  EXPECT_TRUE(warnsOf(withoutDynamo(textOf("nograd")), "no Dynamo graph"));
  EXPECT_FALSE(warnsOf(textOf("nograd"), ""));
}

}  // namespace
}  // namespace retrograd
