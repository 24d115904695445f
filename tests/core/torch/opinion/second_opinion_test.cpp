#include "core/torch/opinion/second_opinion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/job_graphs.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/listing/listing.h"
#include "core/torch/opinion/reference_opinion.h"
#include "core/torch/tracing/op_table.h"
#include "tests/core/formats/cases.h"
#include "tests/core/torch/opinion/sample_job.h"
#include "tests/core/torch/opinion/written_log.h"
#include "tests/support/float_tensor.h"

namespace retrograd {
namespace {

using test::logOf, test::replaced;

const auto& forward = test::writtenForward;
const auto& backward = test::writtenBackward;

SecondOpinion opinionOn(const std::string& forwardText, const std::string& backwardText,
                        const SecondOpinionRequest& request = {}) {
  return secondOpinion(jobs::openJobLog(test::writeTemporary("opinion.log", logOf(forwardText, backwardText))),
                       request);
}

TEST(SecondOpinion, J15_ABackwardThatIsRightAgrees) {
  const auto opinion = opinionOn(forward, backward);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.report.judged, 2U);
}

// A factor that is 1 where a loss has the cotangent 1, as nothing scales it.
TEST(SecondOpinion, TheCotangentOfALossIsNotTakenForOne) {
  const auto opinion = opinionOn(forward, replaced(backward, "aten.expand.default(tangents_1, [4, 5])",
                                                   "aten.full.default([4, 5], 1.0, dtype = torch.float32)"));
  EXPECT_EQ(verdictOf(opinion), Verdict::fail) << reasonOf(opinion);
}

// A formula that treats the gradient 0 apart, and is wrong there alone.
TEST(SecondOpinion, SomeOfWhatFlowsInIsZero) {
  const std::string sum = "        sum_1: \"f32[][]cpu\" = torch.ops.aten.sum.default(mul);  mul = None\n";
  const auto whole = replaced(replaced(forward, sum, ""), "            sum_1,", "            mul,");
  auto back = replaced(backward, "tangents_1: \"f32[][]cpu\"", "tangents_1: \"f32[4, 5][5, 1]cpu\"");
  EXPECT_EQ(verdictOf(opinionOn(whole, back)), Verdict::pass);
  const std::string line = "        expand: \"f32[4, 5][0, 0]cpu\" = ";
  back = replaced(back, line, "        eq: \"b8[4, 5][5, 1]cpu\" = torch.ops.aten.eq.Scalar(tangents_1, 0)\n" + line);
  back = replaced(back, "aten.expand.default(tangents_1, [4, 5])", "aten.add.Tensor(tangents_1, eq)");
  const auto opinion = opinionOn(whole, back);
  ASSERT_EQ(verdictOf(opinion), Verdict::fail);
  EXPECT_NE(reasonOf(opinion).find("off by"), std::string::npos) << reasonOf(opinion);
}

// A fault of one element alone, into which a zero flows at the first look.
TEST(SecondOpinion, AFaultOfAnElementIntoWhichAZeroFlowsIsFound) {
  const std::string sum = "        sum_1: \"f32[][]cpu\" = torch.ops.aten.sum.default(mul);  mul = None\n";
  const auto whole = replaced(replaced(forward, sum, ""), "            sum_1,", "            mul,");
  auto back = replaced(backward, "tangents_1: \"f32[][]cpu\"", "tangents_1: \"f32[4, 5][5, 1]cpu\"");
  const std::string line = "        expand: \"f32[4, 5][0, 0]cpu\" = ";
  back = replaced(back, line,
                  "        arange: \"i64[20][1]cpu\" = torch.ops.aten.arange.default(20)\n"
                  "        eq: \"b8[20][1]cpu\" = torch.ops.aten.eq.Scalar(arange, 5)\n"
                  "        chosen: \"b8[4, 5][5, 1]cpu\" = torch.ops.aten.view.default(eq, [4, 5])\n"
                  "        neg: \"f32[4, 5][5, 1]cpu\" = torch.ops.aten.neg.default(tangents_1)\n" +
                      line);
  back = replaced(back, "aten.expand.default(tangents_1, [4, 5])", "aten.where.self(chosen, neg, tangents_1)");
  const auto opinion = opinionOn(whole, back);
  EXPECT_EQ(verdictOf(opinion), Verdict::fail) << reasonOf(opinion);
}

// The graphs have tensor subclasses part by part, as plain tensors, and sizes of a part as inputs of their own.
TEST(SecondOpinion, GraphsOfTensorSubclassesAreComparedPartByPart) {
  const std::string size =
      "        primals_3: \"Sym(5)\",  # SubclassSizeAOTInput(base=SubclassGetAttrAOTInput("
      "base=PlainAOTInput(idx=1), attr='_values'), idx=0)\n";
  const std::string part = "# SubclassGetAttrAOTInput(base=PlainAOTInput(idx=1), attr='_values')\n";
  auto parts = replaced(forward, "# PlainAOTInput(idx=1)\n", part + size);
  parts = replaced(parts, "# PlainAOTOutput(idx=0)",
                   "# SubclassGetAttrAOTOutput(base=PlainAOTOutput(idx=0), attr='_values')");
  auto back = replaced(backward, "# PlainAOTInput(idx=1)\n", part);
  back = replaced(back, "# TangentAOTInput(output=PlainAOTOutput(idx=0))",
                  "# SubclassGetAttrAOTInput(base=TangentAOTInput(output=PlainAOTOutput(idx=0)), attr='_values')");
  back = replaced(back, "# GradAOTOutput(grad_of=PlainAOTInput(idx=1))",
                  "# SubclassGetAttrAOTOutput(base=GradAOTOutput(grad_of=PlainAOTInput(idx=1)), attr='_values')");
  auto opinion = opinionOn(parts, back);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.report.judged, 2U);
  opinion = opinionOn(parts, replaced(back, "sub.Tensor(1, mul_2)", "sub.Tensor(2, mul_2)"));
  EXPECT_EQ(verdictOf(opinion), Verdict::fail);
}

TEST(SecondOpinion, J15_AWrongBackwardIsNamedWithItsOpAndLine) {
  const auto opinion = opinionOn(forward, replaced(backward, "sub.Tensor(1, mul_2)", "sub.Tensor(2, mul_2)"));
  ASSERT_EQ(verdictOf(opinion), Verdict::fail);
  EXPECT_EQ(std::ranges::count(opinion.report.claims, Severity::fault, &Claim::severity), 2);
  EXPECT_NE(reasonOf(opinion).find("off by"), std::string::npos);
  // The last op that both gradients come from.
  EXPECT_NE(reasonOf(opinion).find("from mul_3 (torch.ops.aten.mul.Tensor), line "), std::string::npos);
  EXPECT_NE(faultOf(opinion).line.find("/job/train.py:7"), std::string::npos);
}

TEST(SecondOpinion, J15_NoneAndDtypesAreCompared) {
  auto opinion = opinionOn(forward, replaced(backward, "            mm_1,  #", "            None,  #"));
  ASSERT_EQ(verdictOf(opinion), Verdict::fail);
  EXPECT_EQ(faultOf(opinion).measure->failure, "is None, and ours is not");
  opinion = opinionOn(forward, replaced(replaced(backward, "mm_2: \"f32", "mm_3: \"f32"), "        return (",
                                        "        mm_2: \"bf16[3, 5][5, 1]cpu\" = torch.ops.aten._to_copy.default(mm_3, "
                                        "dtype = torch.bfloat16)\n        return ("));
  ASSERT_EQ(verdictOf(opinion), Verdict::fail);
  EXPECT_NE(reasonOf(opinion).find("bf16"), std::string::npos) << reasonOf(opinion);
  opinion = opinionOn(forward, replaced(backward, "mul_3: \"f32", "mul_3: \"bf16"));
  ASSERT_EQ(verdictOf(opinion), Verdict::fail);
  EXPECT_NE(reasonOf(opinion).find("mul_3 is f32, and the graph says bf16"), std::string::npos);
}

TEST(SecondOpinion, J15_ABackwardThatDoesNotRunDiffers) {
  const auto opinion = opinionOn(forward, replaced(backward, "mm.default(mul_3, t)", "mm.default(mul_3, primals_1)"));
  ASSERT_EQ(verdictOf(opinion), Verdict::fail);
  EXPECT_NE(reasonOf(opinion).find("does not run"), std::string::npos);
}

/// Forward and backward with a factor that is drawn.
std::pair<std::string, std::string> withDraws() {
  auto drawn = replaced(forward, "torch.ops.aten.mul.Tensor(tanh, 2)", "torch.ops.aten.mul.Tensor(tanh, rand)");
  drawn = replaced(
      drawn, "        mul: ",
      "        rand: \"f32[4, 5][5, 1]cpu\" = torch.ops.aten.rand.default([4, 5], dtype = torch.float32, device = "
      "device(type='cpu'))\n        mul: ");
  drawn = replaced(drawn, "            tanh,  # Saved",
                   "            rand,  # SavedForBackwardsAOTOutput(idx=3)\n            tanh,  # Saved");
  auto read = replaced(backward, "torch.ops.aten.mul.Tensor(expand, 2)", "torch.ops.aten.mul.Tensor(expand, rand)");
  read = replaced(read, "        tanh: \"f32[4, 5][5, 1]cpu\",\n",
                  "        rand: \"f32[4, 5][5, 1]cpu\",\n        tanh: \"f32[4, 5][5, 1]cpu\",\n");
  return {drawn, read};
}

// Derived and imported backward read the same draws.
TEST(SecondOpinion, J15_DrawsAreShared) {
  const auto [drawn, read] = withDraws();
  EXPECT_EQ(verdictOf(opinionOn(drawn, read)), Verdict::pass);
}

// A job's draws are its own: a loss that depends on them is not a reference, and a reference that is not compared
// does not pass.
TEST(SecondOpinion, J15_R4_AReferenceOfAForwardThatDrawsIsNotCompared) {
  SecondOpinionRequest request;
  request.reference.emplace();
  (*request.reference)["loss"] = opinionOn(forward, backward).imported.at("primals_1");  // not the loss
  EXPECT_EQ(verdictOf(opinionOn(forward, backward, request)), Verdict::fail);
  const auto [drawn, read] = withDraws();
  const auto opinion = opinionOn(drawn, read, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible);
  EXPECT_EQ(referenced(opinion), 0U);
  EXPECT_NE(reasonOf(opinion).find("draws random numbers"), std::string::npos) << reasonOf(opinion);
}

// A log has no data for constants of the program: they are drawn where all is, and both backwards read the same.
TEST(SecondOpinion, J15_ConstantsAreDrawn) {
  const std::string constant = "        _tensor_constant0: \"f32[5][1]cpu\" = self._tensor_constant0\n";
  const auto scaled = replaced(replaced(forward, "mul.Tensor(tanh, 2)", "mul.Tensor(tanh, _tensor_constant0)"),
                               "        mul: ", constant + "        mul: ");
  const auto read = replaced(replaced(backward, "mul.Tensor(expand, 2)", "mul.Tensor(expand, _tensor_constant0)"),
                             "        mul_1: ", constant + "        mul_1: ");
  auto opinion = opinionOn(scaled, read);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.report.judged, 2U);
  EXPECT_EQ(opinion.drawn, 3U);
  EXPECT_EQ(verdictOf(opinionOn(scaled, replaced(read, "mul.Tensor(expand, _tensor", "add.Tensor(expand, _tensor"))),
            Verdict::fail);
  SecondOpinionRequest request;
  request.batch["x"] = opinion.imported.at("primals_1");
  request.batch["w"] = opinion.imported.at("primals_2");
  opinion = opinionOn(scaled, read, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible);
  EXPECT_NE(reasonOf(opinion).find("--partial-weights"), std::string::npos) << reasonOf(opinion);
  request.useWhatBinds = true;
  EXPECT_EQ(verdictOf(opinionOn(scaled, read, request)), Verdict::pass);
}

// A draw of the backward's own never agrees, also where no gradient depends on it.
TEST(SecondOpinion, ADrawOfTheBackwardsOwnWithoutEffectIsNotPossible) {
  const auto drawing = replaced(backward, "        mul_1: ",
                                "        rand: \"f32[4, 5][5, 1]cpu\" = torch.ops.aten.rand.default([4, 5])\n"
                                "        none: \"f32[4, 5][5, 1]cpu\" = torch.ops.aten.mul.Tensor(rand, 0)\n"
                                "        mul_1: ");
  auto opinion = opinionOn(forward, replaced(drawing, "mul.Tensor(expand, 2)", "add.Tensor(none, 2)"));
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible) << reasonOf(opinion);
  EXPECT_NE(reasonOf(opinion).find("random numbers of its own"), std::string::npos) << reasonOf(opinion);
  EXPECT_NE(reasonOf(opinion).find("rand (line "), std::string::npos) << reasonOf(opinion);
  opinion = opinionOn(forward, replaced(drawing, "mul.Tensor(expand, 2)", "add.Tensor(rand, 2)"));
  EXPECT_EQ(verdictOf(opinion), Verdict::fail);
}

// Each tensor of a reference is compared, or the verdict is not possible and names it.
TEST(SecondOpinion, WhatAReferenceHasBesidesIsNamed) {
  SecondOpinionRequest request;
  request.batch = {{"x", test::floatTensor({4, 3}, std::vector<float>(12, 0))},
                   {"w", test::floatTensor({3, 5}, std::vector<float>(15, 1))}};
  const auto zero = test::floatTensor({3, 5}, std::vector<float>(15, 0));
  request.reference = TensorMap{{"loss", test::floatTensor({}, {0})}, {"grad.w", zero}, {"grad.in.w", zero}};
  auto opinion = opinionOn(forward, backward, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(referenced(opinion), 3U);
  for (const std::string name : {"grad.in.other", "grad.p.other", "mut.b.mean", "other"}) {
    auto more = request;
    more.reference->emplace(name, zero);
    opinion = opinionOn(forward, backward, more);
    EXPECT_EQ(verdictOf(opinion), Verdict::notPossible) << name;
    EXPECT_NE(reasonOf(opinion).find(name), std::string::npos) << reasonOf(opinion);
  }
}

// A compile has a tied parameter once, and a reference may have its gradient under any of its names.
TEST(SecondOpinion, ATiedParameterIsComparedUnderItsOtherName) {
  const auto filled = [](float first, float step) {
    std::vector<float> values;
    for (int i = 0; i < 15; ++i) values.push_back(first + step * static_cast<float>(i));
    return test::floatTensor({3, 5}, values);
  };
  SecondOpinionRequest request;
  request.batch = {{"x", test::floatTensor({4, 3}, std::vector<float>(12, 0))}};
  request.weights = {{"w", filled(1, 0.5F)}, {"head.w", filled(1, 0.5F)}, {"other.w", filled(2, 0.5F)}};
  request.reference = TensorMap{{"grad.head.w", filled(0, 0)}};
  auto opinion = opinionOn(forward, backward, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(referenced(opinion), 1U);
  request.reference->at("grad.head.w") = filled(1, 0);
  EXPECT_EQ(verdictOf(opinionOn(forward, backward, request)), Verdict::fail);
  request.reference = TensorMap{{"grad.other.w", filled(0, 0)}};
  EXPECT_EQ(verdictOf(opinionOn(forward, backward, request)), Verdict::notPossible);
}

// Parameters that begin with ones are not one because of that, unless they are the same memory.
TEST(SecondOpinion, EqualConstantsAreNotTied) {
  const auto ones = test::floatTensor({2}, {1, 1}), others = test::floatTensor({2}, {1, 1});
  EXPECT_EQ(tiedNames({{"a", ones}, {"b", others}}, "a"), std::vector<std::string>());
  EXPECT_EQ(tiedNames({{"a", ones}, {"module.b", ones}}, "a"), std::vector<std::string>{"b"});
}

// A log has no data of constants, but Dynamo's graph has the numbers that the program makes them of.
TEST(SecondOpinion, J15_ConstantsAreThoseOfDynamosGraph) {
  const std::string constant = "        _tensor_constant0: \"f32[5][1]cpu\" = self._tensor_constant0\n",
                    line = "        # File: /job/train.py:7 in f, code: y = torch.tanh(x @ w)\n";
  const auto scaled = replaced(replaced(forward, "mul.Tensor(tanh, 2)", "mul.Tensor(tanh, _tensor_constant0)"),
                               "        mul: ", constant + "        mul: ");
  const auto read = replaced(backward, "mul.Tensor(expand, 2)", "mul.Tensor(expand, 3.5)");
  const auto dynamo =
      replaced(test::writtenDynamo, "        return",
               line + "        t: \"f32[5]\" = torch.tensor([3.5, 3.5, 3.5, 3.5, 3.5])\n        return");
  const auto opinion =
      secondOpinion(jobs::openJobLog(test::writeTemporary("opinion.log", logOf(scaled, read, {}, dynamo))), {});
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.drawn, 2U);  // x and w
  for (const auto& note : opinion.report.notes)
    EXPECT_EQ(note.find("constant of the compiled program"), std::string::npos);
}

// The inputs of a backward are what is saved and cotangents alone: a constant is described, not passed.
TEST(SecondOpinion, J5_ABackwardThatReadsAConstantIsListed) {
  const std::string constant = "        held: \"f32[5][1]cpu\" = self._tensor_constant0\n";
  const auto read = replaced(replaced(backward, "mul.Tensor(expand, 2)", "mul.Tensor(expand, held)"),
                             "        mul_1: ", constant + "        mul_1: ");
  jobs::ListingOptions options;
  options.kind = TraceKind::backward;
  const auto before = fx::readGraph(forward, "forward"), graph = fx::readGraph(read, "constant");
  options.origins = jobs::linksByLine(before, before.nodes.size(), graph);
  const auto listing = jobs::listingOf(graph, lookupSymbol, options);
  EXPECT_EQ(std::count(listing.inputs.begin(), listing.inputs.end(), "held"), 0);
  EXPECT_EQ(listing.trace.inputs.size(), 4U);
}

// Two ways to write a formula in float32 round a few elements to other numbers of 16 bits: that is noise where our own
// backward has 16 bits there.
TEST(SecondOpinion, J15_OtherRoundingsToSixteenBitsAgree) {
  const auto text = [](const std::string& inputs, const std::string& body) {
    return "class GraphModule(torch.nn.Module):\n    def forward(\n        self,\n        primals_1: \"f32[64, 64][64, "
           "1]cpu\",  # PlainAOTInput(idx=0)\n"
           "        primals_2: \"f32[64, 64][64, 1]cpu\",  # PlainAOTInput(idx=1)\n" +
           inputs + "    ):\n" + body;
  };
  const auto node = [](const std::string& name, const std::string& call, const char* dtype = "f32") {
    return fmt::format("        {}: \"{}[64, 64][64, 1]cpu\" = torch.ops.aten.{}\n", name, dtype, call);
  };
  const auto product = node("low", "_to_copy.default(primals_1, dtype = torch.bfloat16)", "bf16") +
                       node("wide", "_to_copy.default(low, dtype = torch.float32)") +
                       node("mul", "mul.Tensor(wide, primals_2)");
  const auto before = text("", product + node("sin", "sin.default(mul)") +
                                   "        sum_1: \"f32[][]cpu\" = torch.ops.aten.sum.default(sin)\n        return "
                                   "(\n            sum_1,  # PlainAOTOutput(idx=0)\n"
                                   "            primals_1,  # SavedForBackwardsAOTOutput(idx=0)\n"
                                   "            primals_2,  # SavedForBackwardsAOTOutput(idx=1)\n        )\n");
  // `near`: the cosine with the rounding error of a larger number.
  const auto after = [&](const std::string& widened) {
    return text(
        "        tangents_1: \"f32[][]cpu\",  # TangentAOTInput(output=PlainAOTOutput(idx=0))\n",
        product + node("cos", "cos.default(mul)") + node("more", "add.Tensor(cos, 100)") +
            node("near", "add.Tensor(more, -100)") + node("g", "mul.Tensor(cos, tangents_1)") +
            node("h", "mul.Tensor(near, tangents_1)") + node("gx", "mul.Tensor(h, primals_2)") +
            node("rounded", "_to_copy.default(gx, dtype = torch.bfloat16)", "bf16") + widened +
            node("gy", "mul.Tensor(g, wide)") +
            "        return (\n            gw,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))\n            gy,  # "
            "GradAOTOutput(grad_of=PlainAOTInput(idx=1))\n        )\n");
  };
  const auto opinion = opinionOn(before, after(node("gw", "_to_copy.default(rounded, dtype = torch.float32)")));
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.report.judged, 2U);
  ASSERT_EQ(opinion.report.claims.size(), 2U);
  EXPECT_GT(opinion.report.claims[0].measure->deviation, 1e-5);  // something did round otherwise
  const auto off =
      node("g_wide", "_to_copy.default(rounded, dtype = torch.float32)") + node("gw", "mul.Tensor(g_wide, 1.02)");
  EXPECT_EQ(verdictOf(opinionOn(before, after(off))), Verdict::fail);
}

// The same where one element of few weighs a thousand times as much as the others: its rounding is tried too.
TEST(SecondOpinion, J15_OtherRoundingsOfTheElementThatWeighsMostAgree) {
  const auto text = [](const std::string& inputs, const std::string& body) {
    return "class GraphModule(torch.nn.Module):\n    def forward(\n        self,\n        primals_1: "
           "\"f32[16][1]cpu\",  "
           "# PlainAOTInput(idx=0)\n        primals_2: \"f32[16][1]cpu\",  # PlainAOTInput(idx=1)\n" +
           inputs + "    ):\n" + body;
  };
  const auto node = [](const std::string& name, const std::string& call, const char* dtype = "f32") {
    return fmt::format("        {}: \"{}[16][1]cpu\" = torch.ops.aten.{}\n", name, dtype, call);
  };
  const auto wide = node("mul", "mul.Tensor(primals_1, primals_2)") +
                    node("low", "_to_copy.default(mul, dtype = torch.bfloat16)", "bf16") +
                    node("wide", "_to_copy.default(low, dtype = torch.float32)");
  const auto before = text("", wide + node("sin", "sin.default(wide)") +
                                   "        sum_1: \"f32[][]cpu\" = torch.ops.aten.sum.default(sin)\n        return "
                                   "(\n            sum_1,  # PlainAOTOutput(idx=0)\n"
                                   "            primals_1,  # SavedForBackwardsAOTOutput(idx=0)\n"
                                   "            primals_2,  # SavedForBackwardsAOTOutput(idx=1)\n        )\n");
  const auto after = [&](double share) {  // of what the element of weight 1000 is off by
    return text(
        "        tangents_1: \"f32[][]cpu\",  # TangentAOTInput(output=PlainAOTOutput(idx=0))\n",
        wide + node("cos", "cos.default(wide)") + node("g", "mul.Tensor(cos, tangents_1)") +
            node("part", fmt::format("mul.Tensor(primals_2, {})", share / 1000)) +
            node("factor", "add.Tensor(part, 1)") + node("off", "mul.Tensor(g, factor)") +
            node("rounded", "_to_copy.default(off, dtype = torch.bfloat16)", "bf16") +
            node("back", "_to_copy.default(rounded, dtype = torch.float32)") +
            node("gx", "mul.Tensor(back, primals_2)") + node("gw", "mul.Tensor(back, primals_1)") +
            "        return (\n            gx,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))\n            gw,  "
            "# GradAOTOutput(grad_of=PlainAOTInput(idx=1))\n        )\n");
  };
  SecondOpinionRequest request;
  std::vector<float> x(16, 1), w(16, 1);
  x[11] = 0.001F;
  w[11] = 1000;
  request.batch = {{"x", test::floatTensor({16}, x)}, {"w", test::floatTensor({16}, w)}};
  const auto opinion = opinionOn(before, after(0.004), request);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  ASSERT_EQ(opinion.report.claims.size(), 2U);
  EXPECT_GT(opinion.report.claims[0].measure->deviation, 1);  // a step of bfloat16, a thousand times
  EXPECT_EQ(verdictOf(opinionOn(before, after(0.05), request)), Verdict::fail);
}

// Checkpointed dropout: the backward draws once more from the state that the forward saved.
TEST(SecondOpinion, J15_CheckpointedDrawsAreShared) {
  auto drawn = replaced(forward, "torch.ops.aten.mul.Tensor(tanh, 2)", "torch.ops.aten.mul.Tensor(out, 2)");
  drawn =
      replaced(drawn, "        mul: ",
               "        pair = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.native_dropout.default, "
               "tanh, 0.5, True)\n"
               "        state: \"u8[5056][1]cpu\" = pair[0]\n        results = pair[1]\n"
               "        out: \"f32[4, 5][5, 1]cpu\" = results[0]\n        mul: ");
  drawn = replaced(drawn, "            tanh,  # Saved",
                   "            state,  # SavedForBackwardsAOTOutput(idx=3)\n            tanh,  # Saved");
  auto read = replaced(backward, "        tanh: \"f32[4, 5][5, 1]cpu\",\n",
                       "        state_0: \"u8[5056][1]cpu\",\n        tanh: \"f32[4, 5][5, 1]cpu\",\n");
  read = replaced(read, "        mul_2: ",
                  "        again = torch.ops.higher_order.run_with_rng_state(state_0, "
                  "torch.ops.aten.native_dropout.default, tanh, 0.5, True)\n"
                  "        mask: \"b8[4, 5][5, 1]cpu\" = again[1]\n"
                  "        masked: \"f32[4, 5][5, 1]cpu\" = torch.ops.aten.native_dropout_backward.default(mul_1, "
                  "mask, 2.0)\n        mul_2: ");
  const auto right = replaced(read, "mul.Tensor(mul_1, sub)", "mul.Tensor(masked, sub)");
  const auto opinion = opinionOn(drawn, right);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.report.judged, 2U);
  EXPECT_EQ(verdictOf(opinionOn(drawn, read)), Verdict::fail);
}

// Inductor's own ops, which LibTorch lacks.
TEST(SecondOpinion, J15_OpsOfPrimsAreSaidInAten) {
  const auto fused = replaced(backward, "mul_3: \"f32[4, 5][5, 1]cpu\" = torch.ops.aten.mul.Tensor(mul_1, sub)",
                              "mul_3: \"f32[4, 5][5, 1]cpu\" = torch.ops.prims.fma.default(mul_1, sub, expand)");
  const auto zero =
      replaced(fused, "        mul_1: ",
               "        zero: \"f32[4, 5][5, 1]cpu\" = torch.ops.aten.mul.Tensor(expand, 0)\n        mul_1: ");
  EXPECT_EQ(
      verdictOf(opinionOn(forward, replaced(zero, "fma.default(mul_1, sub, expand)", "fma.default(mul_1, sub, zero)"))),
      Verdict::pass);
  EXPECT_EQ(verdictOf(opinionOn(forward, zero)), Verdict::fail);
  const auto unknown = opinionOn(forward, replaced(backward, "torch.ops.aten.mul.Tensor(mul_1, sub)",
                                                   "torch.ops.prims.no_such_op.default(mul_1, sub)"));
  EXPECT_EQ(verdictOf(unknown), Verdict::notPossible);
  EXPECT_NE(reasonOf(unknown).find("prims.no_such_op"), std::string::npos) << reasonOf(unknown);

  auto drawn = replaced(forward, "torch.ops.aten.mul.Tensor(tanh, 2)", "torch.ops.aten.mul.Tensor(tanh, noise)");
  const std::string draw =
      "        seed: \"i64[][]cpu\" = torch.ops.prims.inductor_lookup_seed.default(seeds, 0)\n"
      "        noise: \"f32[4, 5][5, 1]cpu\" = torch.ops.prims.inductor_random.default([4, 5], seed, 'rand')\n";
  drawn = replaced(drawn, "        mul: ",
                   "        seeds: \"i64[1][1]cpu\" = torch.ops.prims.inductor_seeds.default(1, device(type='cpu'))\n" +
                       draw + "        mul: ");
  drawn = replaced(drawn, "            tanh,  # Saved",
                   "            seeds,  # SavedForBackwardsAOTOutput(idx=3)\n            tanh,  # Saved");
  auto read = replaced(backward, "torch.ops.aten.mul.Tensor(expand, 2)", "torch.ops.aten.mul.Tensor(expand, noise)");
  read = replaced(read, "        tanh: \"f32[4, 5][5, 1]cpu\",\n",
                  "        seeds: \"i64[1][1]cpu\",\n        tanh: \"f32[4, 5][5, 1]cpu\",\n");
  const auto opinion = opinionOn(drawn, replaced(read, "        mul_1: ", draw + "        mul_1: "));
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.report.judged, 2U);
}

// What fake tensors said of a saved value need not be what LibTorch makes.
TEST(SecondOpinion, J15_SavedValuesHaveTheTypesThatTheyHave) {
  EXPECT_EQ(
      verdictOf(opinionOn(forward, replaced(backward, "        tanh: \"f32[4, 5]", "        tanh: \"bf16[4, 5]"))),
      Verdict::pass);
}

TEST(SecondOpinion, J15_InputsThatAreDrawnAreCounted) {
  EXPECT_EQ(opinionOn(forward, backward).drawn, 2U);
  SecondOpinionRequest request;
  request.batch["x"] = opinionOn(forward, backward).imported.at("primals_1");  // its gradient has its type
  request.useWhatBinds = true;
  EXPECT_EQ(opinionOn(forward, backward, request).drawn, 1U);
}

// A tensor of another shape than in the log is listed with both, and refused unless it may be drawn.
TEST(SecondOpinion, J14_OtherShapesAreNamed) {
  SecondOpinionRequest request;
  const auto given = opinionOn(forward, backward).imported;
  request.batch["x"] = given.at("primals_2");  // f32[3, 5]
  request.batch["w"] = given.at("primals_2");
  try {
    opinionOn(forward, backward, request);
    ADD_FAILURE() << "a batch of another shape was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("x f32[4, 3] (given as f32[3, 5])"), std::string::npos) << e.what();
  }
  request.useWhatBinds = true;
  const auto opinion = opinionOn(forward, backward, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.drawn, 1U);
}

TEST(SecondOpinion, J15_WithoutABackwardThereIsNothingToCompare) {
  auto log = logOf(forward, backward);
  log = log.substr(0, log.find("V1122 08:20:21.133000 77 a/b.py:18] {\"aot_backward_graph\""));
  const auto opened = jobs::openJobLog(test::writeTemporary("forward.log", log));
  EXPECT_EQ(verdictOf(secondOpinion(opened, {})), Verdict::notPossible);
  EXPECT_NE(reasonOf(secondOpinion(opened, {})).find("no backward graph"), std::string::npos);
  const auto graphs = readComputedGraphs(opened, *jobs::chooseCompile(opened, "0/0").attempt);
  EXPECT_EQ(graphs.results, 1U);
  EXPECT_TRUE(isDifferentiated(graphs, 0));
  EXPECT_THROW(readUnpairedGraphs(opened, *jobs::chooseCompile(opened, "0/0").attempt), Error);
  const auto inference = jobs::openJobLog(
      test::writeTemporary("inference.log", replaced(log, "aot_forward_graph", "aot_inference_graph")));
  EXPECT_NE(reasonOf(secondOpinion(inference, {})).find("compiled for inference"), std::string::npos);
  EXPECT_FALSE(isDifferentiated(readComputedGraphs(inference, *jobs::chooseCompile(inference, "0/0").attempt), 0));
}

// Issue 18, 2: bound to weights and batch, loss and gradients equal eager's; lost_precision alone is flagged.
TEST(SecondOpinion, J10_J15_SamplesWithTheirData) {
  const auto folder = test::cases() / "jobs";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the samples are not beside this checkout";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto job = entry.path();
    if (!std::filesystem::exists(job / "trace") || !std::filesystem::exists(job / "model.safetensors") ||
        job.filename() == "graph_break")
      continue;
    const auto opinion = secondOpinion(jobs::openJobLog((job / "trace").string()), requestOf(job));
    const bool isFaulty = job.filename() == "lost_precision";
    EXPECT_EQ(verdictOf(opinion), isFaulty ? Verdict::fail : Verdict::pass) << job << ": " << reasonOf(opinion);
    if (isFaulty) {
      EXPECT_NE(reasonOf(opinion).find("from mm_1 (torch.ops.aten.mm.default)"), std::string::npos);
      continue;
    }
    EXPECT_GT(referenced(opinion), 5U) << job;
    for (const auto& claim : opinion.report.claims)
      if (claim.kind == "derived-tensor") EXPECT_TRUE(claim.good()) << job << " " << claim.sentence;
  }
}

}  // namespace
}  // namespace retrograd
