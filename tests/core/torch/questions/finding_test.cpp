#include "core/questions/finding.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "core/derivation/gradient_of.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

TEST(Findings, AParameterWhoseGradientIsNoneNamesWhereItsWayEnds) {
  ModelBuilder m;
  const auto x = m.input("x", {4}), used = m.parameter("used", {4}), cut = m.parameter("cut", {4});
  m.parameter("frozen", {4}, false);
  m.output(m.op("aten.sum.default",
                {m.op("aten.add.Tensor", {m.op("aten.mul.Tensor", {x, used}), m.op("aten.detach.default", {cut})})}));
  const auto a = m.analyse();
  const auto found = missingGradients(*a);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].sentence.find("the gradient of cut is None: "), 0U) << found[0].sentence;
  EXPECT_EQ(found[0].severity, Severity::suspicion);
  EXPECT_NE(found[0].sentence.find("detach"), std::string::npos) << found[0].sentence;
  EXPECT_TRUE(found[0].op);
  EXPECT_EQ(found[0].value, cut);
  EXPECT_EQ(found[0].command, "why");
  EXPECT_EQ(found[1].severity, Severity::note);
  EXPECT_NE(found[1].sentence.find("frozen"), std::string::npos);
  // Beyond the limit they are counted.
  const auto none = missingGradients(*a, 0);
  EXPECT_EQ(none[0].sentence, "1 parameter more without a gradient");
}

TEST(Findings, ALayerUnlikeItsEqualsIsNamedWithTheirMedian) {
  ModelBuilder m;
  auto x = m.input("x", {4});
  for (int i = 0; i < 4; ++i) x = m.op("aten.mul.Tensor", {x, m.parameter("h." + std::to_string(i) + ".weight", {4})});
  m.output(m.op("aten.sum.default", {m.op("aten.mul.Tensor", {x, m.parameter("head.weight", {4})})}));
  const auto a = m.analyse();
  const auto gradients = gradientsOfInputs(*a);
  std::map<ValueId, double> norms;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i]) norms[gradients[i]] = 1 + static_cast<double>(i);
  const auto normOf = [&](ValueId gradient) { return std::optional(norms[gradient]); };
  EXPECT_TRUE(layersThatDiffer(*a, normOf).empty());
  ValueId third;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (a->computation().inputs[i].target == "h.2.weight") third = gradients[i];
  ASSERT_TRUE(third);
  for (const double unlike : {5000.0, 0.0}) {
    norms[third] = unlike;
    const auto found = layersThatDiffer(*a, normOf);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0].sentence.find("h.2.weight"), std::string::npos);
    EXPECT_NE(found[0].sentence.find("median of 4"), std::string::npos) << found[0].sentence;
    EXPECT_EQ(found[0].value, third);
  }
  norms[third] = std::numeric_limits<double>::quiet_NaN();  // another finding's
  EXPECT_TRUE(layersThatDiffer(*a, normOf).empty());
}

}  // namespace
}  // namespace retrograd::test
