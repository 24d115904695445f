// Each tensor is judged by its own tolerance.
#include "core/torch/judging/judge.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>

#include "core/torch/checking/check.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/judging/perturb.h"
#include "core/torch/judging/write_reference.h"
#include "core/torch/reading/read_model.h"
#include "tests/core/formats/cases.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

using test::writeTemporary;

std::shared_ptr<const Analysis> opened(const std::string& text) {
  return openModel(writeTemporary("judged.txt", text));
}

/// float32 elements times `factor`, plus `by` in the first.
TensorData changed(const TensorData& tensor, float factor, float by = 0) {
  auto bytes = std::make_shared<std::vector<std::byte>>(tensor.data, tensor.data + tensor.bytes);
  for (std::size_t i = 0; i + sizeof(float) <= bytes->size(); i += sizeof(float)) {
    float element = 0;
    std::memcpy(&element, bytes->data() + i, sizeof element);
    element = element * factor + (i == 0 ? by : 0);
    std::memcpy(bytes->data() + i, &element, sizeof element);
  }
  return {tensor.meta, bytes->data(), bytes->size(), bytes};
}

/// Until the end of the scope this process gets no more than so many bytes.
class LittleMemory {
 public:
  explicit LittleMemory(std::uint64_t bytes) {
    getrlimit(RLIMIT_DATA, &before_);
    std::ifstream status("/proc/self/status");
    std::uint64_t kilobytes = 0;
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmData:")) kilobytes = std::stoull(line.substr(7));
    const rlimit now{kilobytes * 1024 + bytes, before_.rlim_max};
    setrlimit(RLIMIT_DATA, &now);
  }
  ~LittleMemory() { setrlimit(RLIMIT_DATA, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

/// The gradient of u is a billion times larger than that of w.
constexpr const char* unequal = R"(
def computation(x, w, u):
    # x: "f32[8, 8]"
    # w: "f32[8, 8]", parameter
    # u: "f32[8, 8]", parameter
    a = aten.mm(x, w)
    small = aten.mul.Tensor(a, 1e-09)
    c = aten.tanh(small)
    d = aten.sum(c)
    b = aten.mm(x, u)
    e = aten.sin(b)
    f = aten.sum(e)
    y = aten.add.Tensor(d, f)
    return y
)";

// Eager finds what was written to a tied buffer under both of its names, a trace under one.
TEST(Judge, AWriteToATiedBufferRaisesNoAlarm) {
  const auto path = writeTemporary("tied.txt", R"(
def computation(p, b, tied):
    # p: "f64[3]", parameter p
    # b: "f64[3]", buffer b
    # tied: "f64[3]", buffer tied, shares b
    x = aten.add.Tensor(p, tied)
    w = aten.add_.Scalar(b, 1.0)
    y = aten.add.Tensor(x, tied)
    return y
)");
  const auto report = checkModel(path, {});
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
}

// A check whose eager run found no memory would pass without having compared anything with it.
TEST(Judge, MemoryThatRunsShortIsNotARefusalOfTheModel) {
  const auto analysis = opened(R"(
def computation(x):
    # x: "f32[1024]"
    a = aten.repeat(x, [1024, 256])
    b = aten.sin(a)
    y = aten.sum(b)
    return y
)");
  Noise noise(analysis);
  const LittleMemory limit(256 << 20);
  for (int again = 0; again < 2; ++again) EXPECT_THROW(noise.eager(), std::bad_alloc);
  EXPECT_THROW(runJoint(*analysis), std::bad_alloc);
}

TEST(Judge, ASmallGradientIsNotHiddenByALargeOne) {
  const auto analysis = opened(unequal);
  const auto run = namedResults(*analysis, runJoint(*analysis));
  Judge judge(analysis);
  for (const std::string name : {"grad.p.w", "grad.p.u"}) {
    const auto& gradient = run.at(name);
    EXPECT_TRUE(judge.compare(name, gradient, gradient).good());
    const auto off = judge.compare(name, changed(gradient, 1.001f), gradient),
               zero = judge.compare(name, changed(gradient, 0), gradient);
    EXPECT_FALSE(off.good()) << name << " " << off.deviation << " " << off.tolerance;
    EXPECT_FALSE(zero.good()) << name;
    EXPECT_FALSE(off.tooNoisy()) << name;
    EXPECT_GT(off.tolerance, 0);
    EXPECT_NEAR(off.deviation, 0.001 * off.scale, 1e-5 * off.scale);
    EXPECT_TRUE(judge.compare(name, changed(gradient, 1.0000001f), gradient).good()) << name;
  }
}

// An offset before batch norm in training has a gradient of zero but for rounding.
TEST(Judge, WhatIsZeroButForRoundingIsNotAFailure) {
  const auto analysis = opened(R"(
def computation(x, w, b, g):
    # x: "f32[6, 5]"
    # w: "f32[4, 5]", parameter
    # b: "f32[4]", parameter
    # g: "f32[6, 4]"
    y = aten.linear(x, w, b)
    m = aten.mean.dim(y, [0], True)
    d = aten.sub.Tensor(y, m)
    t = aten.tanh(d)
    z = aten.mul.Tensor(t, g)
    return z
)");
  const auto run = namedResults(*analysis, runJoint(*analysis));
  Judge judge(analysis);
  const auto& gradient = run.at("grad.p.b");
  ASSERT_LT(difference(gradient, changed(gradient, 0)).deviation, 1e-5) << "not zero but for rounding";
  for (const auto& other : {changed(gradient, -1), changed(gradient, 0)}) {
    const auto verdict = judge.compare("grad.p.b", gradient, other);
    EXPECT_TRUE(verdict.good()) << verdict.deviation << " " << verdict.tolerance;
  }
  EXPECT_FALSE(judge.compare("grad.p.b", changed(gradient, 1, 1e-3f), gradient).good());
}

// Gradients that cancel exactly in eager's order of summing leave a rounding in another one.
TEST(Judge, WhatCancelsInEagerAloneIsNotAFailure) {
  const auto analysis = opened(R"(
def computation(x):
    # x: "f32[]"
    v = aten.stack([x, x, x])
    w = aten.atan2(v, x)
    return w
)");
  const auto run = namedResults(*analysis, runEager(*analysis));
  Judge judge(analysis);
  const auto& gradient = run.at("grad.in.x");
  ASSERT_LT(difference(gradient, changed(gradient, 0)).deviation, 1e-6) << "it does not cancel";
  const auto verdict = judge.compare("grad.in.x", changed(gradient, 0, 1e-7f), changed(gradient, 0));
  EXPECT_TRUE(verdict.good()) << verdict.deviation << " " << verdict.tolerance;
  EXPECT_FALSE(judge.compare("grad.in.x", changed(gradient, 0, 1e-3f), changed(gradient, 0)).good());
}

/// Batch norm in training over two items: nearly all of a gradient cancels.
std::string illConditioned(int layers) {
  std::string text = "def computation(x, w";
  for (int i = 0; i < layers; ++i) text += ", w" + std::to_string(i);
  text += "):\n    # x: \"f32[2, 16]\"\n    # w: \"f32[16]\", parameter\n";
  for (int i = 0; i < layers; ++i) text += "    # w" + std::to_string(i) + ": \"f32[16, 16]\", parameter\n";
  std::string h = "x";
  for (int i = 0; i < layers; ++i) {
    const auto n = std::to_string(i);
    text += "    a" + n + " = aten.linear(" + h + ", w" + n + ")\n";
    text += "    b" + n + ", m" + n + ", s" + n + " = aten.native_batch_norm(a" + n +
            ", w, None, None, None, True, 0.1, 1e-05)\n";
    text += "    r" + n + " = aten.relu(b" + n + ")\n";
    text += "    h" + n + " = aten.add.Tensor(" + h + ", r" + n + ")\n";
    h = "h" + n;
  }
  return text + "    return " + h + "\n";
}

// A run that was rounded otherwise, as with another number of threads, raises no alarm where the model is
// ill-conditioned.
TEST(Judge, OtherRoundingOfAnIllConditionedModelIsNotAFailure) {
  const auto path = writeTemporary("judged.txt", illConditioned(8));
  const auto analysis = openModel(path);
  ASSERT_TRUE(analysis->derived()) << analysis->problems.at(0).message;
  ModelCheck check(path, {});
  double most = 0;
  for (std::uint64_t seed = 101; seed < 111; ++seed) {
    const auto other = namedResults(*analysis, runEager(*movedByOneStep(*analysis, seed)));
    Reference reference;
    for (const auto& [name, tensor] : other) {
      if (name.starts_with("out.")) reference.expected.outputs.emplace(name.substr(4), tensor);
      if (name.starts_with("grad.in.")) reference.expected.inputGradients.emplace(name.substr(8), tensor);
      if (name.starts_with("grad.p.")) reference.expected.parameterGradients.emplace(name.substr(7), tensor);
    }
    const auto report = check.against(reference);
    EXPECT_EQ(test::verdictOf(report), Verdict::pass) << seed << " " << test::textOf(report);
    for (const auto& claim : report.claims)
      if (claim.measure && claim.measure->scale > 0)
        most = std::max(most, claim.measure->deviation / claim.measure->scale);
  }
  EXPECT_GT(most, 1e-4) << "the model is not ill-conditioned";
}

TEST(Judge, AToleranceThatIsAskedForIsRelativeToTheTensor) {
  const auto analysis = opened(unequal);
  const auto run = namedResults(*analysis, runJoint(*analysis));
  Judge judge(analysis, 0.01);
  const auto& gradient = run.at("grad.p.w");
  EXPECT_TRUE(judge.compare("grad.p.w", changed(gradient, 1.005f), gradient).good());
  EXPECT_FALSE(judge.compare("grad.p.w", changed(gradient, 1.02f), gradient).good());
}

TEST(Judge, NaNEverywhereIsNotAPassAndTheOpIsNamed) {
  for (const std::string name : {"log_of_zero", "half_overflow", "zero_over_zero"}) {
    const auto report = checkModel(sourcePath("tests/data/planted/") + name + ".txt", {});
    EXPECT_EQ(test::verdictOf(report), Verdict::fail) << name;
    EXPECT_NE(test::textOf(report).find("NaN"), std::string::npos) << test::textOf(report);
    EXPECT_NE(decide(report).reason.find("first made by #"), std::string::npos) << decide(report).reason;
  }
}

/// Elements that a file's numbers can have.
TEST(Judge, OneStepMovesWhatIsRoundedAndLeavesWhatIsExact) {
  auto memory = std::make_shared<std::vector<float>>(
      std::vector{0.f, 1.f, -0.5f, 3.f, 0.1f, -1.7f, std::numeric_limits<float>::infinity(), std::nanf("")});
  TensorData tensor;
  tensor.meta.dtype = DType::f32;
  tensor.meta.sizes = {static_cast<std::int64_t>(memory->size())};
  tensor.meta.strides = {1};
  tensor.data = reinterpret_cast<const std::byte*>(memory->data());
  tensor.bytes = memory->size() * sizeof(float);
  tensor.owner = memory;
  const auto moved = asDoubles(moveByOneStep(tensor, 1)), before = asDoubles(tensor);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool rounded = i == 4 || i == 5;
    EXPECT_EQ(moved[i] != before[i] && !std::isnan(before[i]), rounded) << i;
    if (rounded) {
      EXPECT_NEAR(moved[i] / before[i], 1, 1.2e-7);
    }
  }
}

/// A reference that this model's run saved, without one gradient, or with one that is not there.
TEST(Judge, AMissingGradientAndOneThatShouldBeNoneFail) {
  const auto path = writeTemporary("judged.txt", unequal);
  ModelCheck check(path, {});
  const auto analysis = openModel(path);
  const auto run = namedResults(*analysis, runJoint(*analysis));
  Reference reference;
  reference.expected.outputs.emplace("0", run.at("out.0"));
  reference.expected.inputGradients.emplace("x", run.at("grad.in.x"));
  reference.expected.parameterGradients = {{"w", run.at("grad.p.w")}, {"u", run.at("grad.p.u")}};
  EXPECT_EQ(test::verdictOf(check.against(reference)), Verdict::pass) << decide(check.against(reference)).reason;
  auto fewer = reference;
  fewer.expected.parameterGradients.erase("w");
  EXPECT_EQ(decide(check.against(fewer)).reason, "grad.p.w (reference): should be None: the reference has none");
  auto more = reference;
  more.expected.parameterGradients.emplace("v", run.at("grad.p.w"));
  EXPECT_EQ(test::verdictOf(check.against(more)), Verdict::notPossible);  // nothing to compare it with
  auto written = reference;
  written.expected.bufferMutations.emplace("nothing", run.at("grad.p.w"));
  EXPECT_EQ(check.against(written).notJudged.at(0).subject, "mut.b.nothing of the reference");
}

}  // namespace
}  // namespace retrograd
