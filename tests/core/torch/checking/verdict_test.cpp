// One rule of exit codes: a pass only where everything given was compared and nothing is NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "core/formats/safetensors/safetensors.h"
#include "core/torch/checking/check.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "tests/core/formats/cases.h"
#include "tests/support/float_tensor.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

using test::floatTensor;
using test::writeTemporary;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

Report check(const std::string& model, const TensorMap& reference, CheckOptions options = {}) {
  options.reference = writeTemporary("verdict.safetensors", "");
  writeSafetensors(options.reference, reference, {});
  return checkModel(model, options);
}

bool has(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

constexpr const char* product = R"(
def computation(x, w):
    # x: "f32[2]"
    # w: "f32[2]", parameter
    y = aten.mul.Tensor(x, w)
    loss = aten.sum(y)
    return loss
)";

/// What this model gives for x = [1, 2] and w as it is drawn, as a reference.
TensorMap referenceOf(const std::string& model) {
  DerivationRequest request;
  request.inputs["x"] = floatTensor({2}, {1, 2});
  const auto analysis = openModel(model, request);
  auto named = namedResults(*analysis, runJoint(*analysis));
  named.emplace("in.x", floatTensor({2}, {1, 2}));
  named.emplace("cot.0", floatTensor({}, {1}));
  return named;
}

TEST(Verdict, AReferenceOfWhichNothingWasComparedDoesNotPass) {
  const auto model = sourcePath("tests/data/reports/vmap.pt2");
  auto report = check(model, {{"out.0", floatTensor({}, {12345})}});
  EXPECT_EQ(test::verdictOf(report), Verdict::notPossible) << test::textOf(report);
  report = check(model, {{"loss", floatTensor({}, {12345})}});
  EXPECT_EQ(test::verdictOf(report), Verdict::notPossible) << test::textOf(report);
}

TEST(Verdict, ATensorOfAReferenceThatWasNotComparedDoesNotPass) {
  const auto model = writeTemporary("product.txt", product);
  const auto reference = referenceOf(model);
  EXPECT_EQ(test::verdictOf(check(model, reference)), Verdict::pass) << test::textOf(check(model, reference));
  for (const std::string name : {"out.1", "grad.p.other", "mut.b.other", "mut.in.other", "other", "output.0"}) {
    auto more = reference;
    more.emplace(name, floatTensor({2}, {0, 0}));
    const auto report = check(model, more);
    EXPECT_EQ(test::verdictOf(report), Verdict::notPossible) << name << ": " << test::textOf(report);
    EXPECT_EQ(report.notJudged.size(), 1u) << name;
  }
  // An input's gradient says which inputs to differentiate: one that is not there cannot be.
  auto input = reference;
  input.emplace("grad.in.other", floatTensor({2}, {0, 0}));
  EXPECT_THROW(check(model, input), Error);
  // Another name instead of the right one: what the model gives has no counterpart then, which is a failure.
  auto renamed = reference;
  renamed.erase("grad.p.w");
  renamed.emplace("grad.p.v", reference.at("grad.p.w"));
  EXPECT_EQ(test::verdictOf(check(model, renamed)), Verdict::fail);
}

TEST(Verdict, AnEmptyReferenceDoesNotPass) {
  const auto model = writeTemporary("product.txt", product);
  EXPECT_EQ(test::verdictOf(check(model, {})), Verdict::notPossible);
  EXPECT_EQ(test::verdictOf(check(model, {{"in.x", floatTensor({2}, {1, 2})}})), Verdict::notPossible);
}

// The first derivative is an output of what is differentiated again: the reference is compared there.
TEST(Verdict, AReferenceIsComparedWhereGradientsAreDifferentiatedToo) {
  const auto model = writeTemporary("product.txt", product);
  CheckOptions twice;
  twice.order = 2;
  auto reference = referenceOf(model);
  EXPECT_EQ(test::verdictOf(check(model, reference, twice)), Verdict::pass)
      << test::textOf(check(model, reference, twice));
  reference.at("grad.p.w") = floatTensor({2}, {5, 5});
  EXPECT_EQ(test::verdictOf(check(model, reference, twice)), Verdict::fail);
}

TEST(Verdict, AForwardMayWriteToAParameter) {
  for (const std::string name : {"param_div_A", "param_div_B"}) {
    const auto report = checkModel(sourcePath("tests/data/reports/") + name + ".pt2", {});
    EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
  }
}

// Gradients that a file has of its own are its backward, and the derived ones judge them.
TEST(Verdict, GradientsThatAFileHasOfItsOwnAreCompared) {
  auto report = checkModel(sourcePath("tests/data/reports/joint.pt2"), {});
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
  EXPECT_TRUE(has(report.notes, "the file has gradients of its own: 3 compared with the derived ones"));
  report = checkModel(sourcePath("tests/data/reports/joint_exchanged.pt2"), {});
  EXPECT_EQ(test::verdictOf(report), Verdict::fail) << test::textOf(report);
  for (const auto* name : {"grad.p.a.weight", "grad.p.b.weight"}) {
    const auto* claim = test::findClaim(report, Producer::derivative, name);
    EXPECT_TRUE(claim && !claim->good()) << name;
  }
}

TEST(Verdict, AFunctionThatExportHasLostIsWarnedOf) {
  const auto report = checkModel(sourcePath("tests/data/reports/captured/step/model.pt2"), {});
  const auto* warning = test::findClaim(report, "warning");
  ASSERT_NE(warning, nullptr);
  EXPECT_NE(warning->sentence.find("autograd.Function"), std::string::npos);
  const auto lines = detailLines(report, true);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const ReportLine& line) {
    return line.text.starts_with("suspicion: ") && line.text.find("autograd.Function") != std::string::npos;
  }));
}

// A pass of an export says what it did not test; with PyTorch's gradients it was tested.
TEST(Verdict, AVerdictSaysWhichCustomBackwardWasNotTested) {
  const auto model = sourcePath("tests/data/reports/captured/step/model.pt2");
  const auto report = checkModel(model, {});
  EXPECT_EQ(test::verdictOf(report), Verdict::pass);
  const auto line = test::textOf(report);
  EXPECT_NE(line.find("NOT tested: the backward of Gain ("), std::string::npos) << line;
  EXPECT_NE(line.find(", Clip ("), std::string::npos) << line;
  EXPECT_NE(line.find("retrograd.capture"), std::string::npos) << line;
  CheckOptions options;
  options.reference = sourcePath("tests/data/reports/captured/step/ref.safetensors");
  EXPECT_EQ(test::textOf(checkModel(model, options)).find("NOT tested"), std::string::npos);
}

TEST(Verdict, AFolderNamesTheOpWhereAnotherBackwardRan) {
  CheckOptions options;
  options.reference = sourcePath("tests/data/reports/captured/step/ref.safetensors");
  const auto report = checkModel(sourcePath("tests/data/reports/captured/step/model.pt2"), options);
  EXPECT_EQ(test::verdictOf(report), Verdict::fail);
  const auto& parting = report.claims.front();
  EXPECT_NE(parting.sentence.find("aten.round"), std::string::npos) << parting.sentence;
  EXPECT_EQ(parting.kind, "custom-backward");
  EXPECT_EQ(parting.subject, "Clip");
  EXPECT_NE(parting.line.find("make.py:17"), std::string::npos) << parting.line;
  EXPECT_TRUE(parting.op);
  // The one wrong gradient passes both.
  EXPECT_TRUE(decide(report).reason.starts_with(
      "one of Clip.backward, Gain.backward gives another gradient than the ops of the forward: gradients part at #"))
      << decide(report).reason;
}

constexpr const char* scaledTwice = R"(
def computation(x, a, w):
    # x: "f32[2]"
    # a: "f32[2]", parameter
    # w: "f32[2]", parameter
    h = aten.mul.Tensor(x, a)
    # net.py:7: s = Scale.apply(h)
    s = aten.sin(h)
    # net.py:8: t = s.tanh()
    t = aten.tanh(s)
    # net.py:9: y = Scale.apply(t, self.w)
    u = aten.cos(t)
    y = aten.mul.Tensor(u, w)
    # net.py:10: return y.sum()
    loss = aten.sum(y)
    return loss
)";

// The factor is one where a backward forgets to divide; a gradient that is right names the input that is not at fault.
TEST(Verdict, ACustomBackwardIsNamedWithInputFactorAndOtherCalls) {
  const auto model = writeTemporary("scaled.txt", scaledTwice);
  auto reference = referenceOf(model);
  for (const std::string name : {"grad.p.a", "grad.in.x"}) {
    auto& gradient = reference.at(name);
    std::array<float, 2> numbers{};
    std::memcpy(numbers.data(), gradient.data, sizeof numbers);  // contiguous
    gradient = floatTensor({2}, {16 * numbers[0], 16 * numbers[1]});
  }
  const auto report = check(model, reference);
  EXPECT_EQ(test::verdictOf(report), Verdict::fail);
  const auto reason = decide(report).reason;
  EXPECT_TRUE(reason.starts_with(
      "Scale.backward gives another gradient than the ops of its forward for its input t, 16 times theirs: "))
      << reason;
  EXPECT_NE(reason.find("it is also called at #"), std::string::npos) << reason;
  // Without a common factor none is named.
  reference.at("grad.p.a") = floatTensor({2}, {9, -9});
  const auto other = check(model, reference);
  ASSERT_EQ(other.claims.front().kind, "custom-backward");
  EXPECT_EQ(other.claims.front().sentence.find("times"), std::string::npos) << other.claims.front().sentence;
}

/// b's gradient is right, a's is not: between the two.
TEST(Verdict, WhereAHookWasRegisteredIsSaid) {
  const auto model = writeTemporary("hooked.txt", R"(
def computation(x, a, b):
    # x: "f32[2]"
    # a: "f32[2]", parameter
    # b: "f32[2]", parameter
    h = aten.mul.Tensor(x, a)
    t = aten.tanh(h)
    y = aten.mul.Tensor(t, b)
    loss = aten.sum(y)
    return loss
)");
  auto reference = referenceOf(model);
  reference.at("grad.p.a") = floatTensor({2}, {9, 9});
  reference.at("grad.in.x") = floatTensor({2}, {9, 9});
  const auto report = check(model, reference);
  EXPECT_EQ(test::verdictOf(report), Verdict::fail);
  const auto* parting = test::findClaim(report, "gradients-part");
  ASSERT_NE(parting, nullptr) << test::textOf(report);
  EXPECT_NE(parting->sentence.find("tanh"), std::string::npos) << parting->sentence;
  EXPECT_NE(parting->sentence.find("hook"), std::string::npos);
  // Where outputs differ too, the gradients say nothing of where.
  reference.at("out.0") = floatTensor({}, {1e6F});
  EXPECT_EQ(test::findClaim(check(model, reference), "gradients-part"), nullptr);
}

// PyTorch's own backward raised, as in a captured step: its reference has no gradients, which says nothing of them.
TEST(Verdict, AReferenceOfABackwardThatRaisedHasNoGradientsToMiss) {
  const auto model = writeTemporary("product.txt", product);
  auto reference = referenceOf(model);
  for (const std::string name : {"grad.p.w", "grad.in.x"}) reference.erase(name);
  EXPECT_EQ(test::verdictOf(check(model, reference)), Verdict::fail);
  CheckOptions options;
  options.reference = writeTemporary("raised.safetensors", "");
  writeSafetensors(options.reference, reference, {{"gradients", "none"}, {"requires_grad", "x"}});
  const auto report = checkModel(model, options);
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
  EXPECT_EQ(test::findClaim(report, "gradients-part"), nullptr);
  reference.at("out.0") = floatTensor({}, {12345});
  writeSafetensors(options.reference, reference, {{"gradients", "none"}, {"requires_grad", "x"}});
  EXPECT_EQ(test::verdictOf(checkModel(model, options)), Verdict::fail);
}

// The reference has the same NaN.
TEST(Verdict, NaNDoesNotPassThoughPyTorchHasTheSame) {
  const auto model = writeTemporary("product.txt", product);
  DerivationRequest request;
  request.inputs["x"] = floatTensor({2}, {1, nan});
  const auto analysis = openModel(model, request);
  auto reference = namedResults(*analysis, runJoint(*analysis));
  reference.emplace("in.x", floatTensor({2}, {1, nan}));
  reference.emplace("cot.0", floatTensor({}, {1}));
  const auto report = check(model, reference);
  EXPECT_EQ(test::verdictOf(report), Verdict::fail);
  for (const auto& claim : report.claims)
    EXPECT_TRUE(claim.severity != Severity::fault || claim.by == Producer::health) << claim.sentence;
  // Where it comes from is said first.
  const auto text = test::textOf(report);
  EXPECT_NE(text.find("fault: out.0 has"), std::string::npos) << text;
  EXPECT_LT(text.find("fault: NaN comes in with the input x"), text.find("fault: out.0 has")) << text;
}

// One of many gradients; the loss is finite.
TEST(Verdict, NaNInOneGradientDoesNotPass) {
  const auto report = checkModel(writeTemporary("one_gradient.txt", R"(
def computation(x, w, u):
    # x: "f32[2]"
    # w: "f32[2]", parameter
    # u: "f32[2]", parameter
    zero = aten.mul.Tensor(u, 0.0)
    root = aten.sqrt(zero)
    y = aten.mul.Tensor(x, w)
    z = aten.add.Tensor(y, root)
    loss = aten.sum(z)
    return loss
)"),
                                 {});
  EXPECT_EQ(test::verdictOf(report), Verdict::fail);
  ASSERT_NE(test::findClaim(report, "not-finite"), nullptr);
  EXPECT_EQ(test::findClaim(report, "not-finite")->subject, "grad.p.u");
  EXPECT_NE(test::findClaim(report, "not-finite-root"), nullptr);
}

/// The loss does not depend on the statistics that batch norm keeps: only they are bad.
TEST(Verdict, NaNInABufferAloneDoesNotPass) {
  const auto report = checkModel(writeTemporary("one_buffer.txt", R"(
def computation(x, b, w):
    # x: "f32[2]"
    # b: "f32[2]", buffer b
    # w: "f32[2]", parameter
    zero = aten.mul.Tensor(x, 0.0)
    bad = aten.log(zero)
    c = aten.copy_(b, bad)
    y = aten.mul.Tensor(x, w)
    loss = aten.sum(y)
    return loss
)"),
                                 {});
  EXPECT_EQ(test::verdictOf(report), Verdict::fail) << test::textOf(report);
  EXPECT_NE(test::findClaim(report, "not-finite", "mut.b.b"), nullptr);
}

TEST(Verdict, NaNInAParameterThatNothingReadsDoesNotPass) {
  const auto model = writeTemporary("unused.txt", R"(
def computation(x, w, unused):
    # x: "f32[2]"
    # w: "f32[2]", parameter
    # unused: "f32[2]", parameter
    y = aten.mul.Tensor(x, w)
    loss = aten.sum(y)
    return loss
)");
  CheckOptions options;
  options.data.weights = writeTemporary("weights.safetensors", "");
  writeSafetensors(options.data.weights, {{"w", floatTensor({2}, {1, 2})}, {"unused", floatTensor({2}, {1, infinity})}},
                   {});
  const auto report = checkModel(model, options);
  EXPECT_EQ(test::verdictOf(report), Verdict::fail) << test::textOf(report);
  EXPECT_NE(test::findClaim(report, "not-finite", "p.unused"), nullptr);
}

// It is a note; and a mask is not even that.
TEST(Verdict, NaNThatReachesNoResultIsANote) {
  const auto report = checkModel(writeTemporary("inner.txt", R"(
def computation(x, w):
    # x: "f32[2]"
    # w: "f32[2]", parameter
    zero = aten.mul.Scalar(x, 0.0)
    bad = aten.log(zero)
    chosen = aten.gt.Scalar(bad, 0.0)
    y = aten.mul.Tensor(x, w)
    z = aten.where.ScalarSelf(chosen, 0.0, y)
    loss = aten.sum(z)
    return loss
)"),
                                 {});
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
  const auto* note = test::findClaim(report, "not-finite-root");
  ASSERT_NE(note, nullptr) << test::textOf(report);
  EXPECT_NE(note->sentence.find("aten.log"), std::string::npos) << note->sentence;
  EXPECT_EQ(note->severity, Severity::note);
}

TEST(Verdict, AMaskIsHealthy) {
  const auto model = writeTemporary("masked.txt", R"(
def computation(x, mask, w):
    # x: "f32[2, 2]"
    # mask: "f32[2, 2]", buffer mask
    # w: "f32[2, 2]", parameter
    y = aten.mul.Tensor(x, w)
    z = aten.add.Tensor(y, mask)
    s = aten._softmax(z, -1, False)
    return s
)");
  CheckOptions options;
  options.data.weights = writeTemporary("mask.safetensors", "");
  writeSafetensors(options.data.weights,
                   {{"w", floatTensor({2, 2}, {1, 2, 3, 4})}, {"mask", floatTensor({2, 2}, {0, -infinity, 0, 0})}}, {});
  const auto report = checkModel(model, options);
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
  EXPECT_EQ(test::findClaim(report, "not-finite"), nullptr) << test::textOf(report);
}

}  // namespace
}  // namespace retrograd
