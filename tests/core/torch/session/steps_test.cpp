#include "core/stepping/steps.h"

#include <gtest/gtest.h>

#include <set>

#include "core/torch/session/session.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

std::shared_ptr<const Analysis> model(const std::string& name) {
  return openModel(sourcePath("tests/data/models/") + name + "/model.pt2");
}

/// The first position whose op is within a body, and the higher-order op that holds it.
std::pair<std::size_t, BoundSymbolId> firstInBody(const Analysis& analysis, const Steps& steps) {
  for (std::size_t p = 0; p < steps.size(); ++p)
    if (const auto origin = OriginLinks::origin(*analysis.document, steps.opAt(p)))
      if (const auto parent = analysis.document->boundSymbol(origin).parent) return {p, parent};
  return {steps.size(), {}};
}

TEST(Steps, OverALinearIntoItsOpsAndOutAgain) {
  const Steps steps(model("mlp"));
  EXPECT_EQ(steps.goal(Step::over, 0), 2u);  // t and addmm of the first linear
  EXPECT_EQ(steps.goal(Step::into, 0), 1u);
  EXPECT_EQ(steps.goal(Step::over, 1), 2u);  // inside: one op
  EXPECT_EQ(steps.goal(Step::out, 1), 2u);
  EXPECT_EQ(steps.goal(Step::outBack, 1), 0u);
  EXPECT_EQ(steps.goal(Step::overBack, 2), 0u);
  EXPECT_EQ(steps.goal(Step::intoBack, 2), 1u);
}

TEST(Steps, OutOfTheOutermostLeadsToTheBorder) {
  const Steps steps(model("mlp"));
  EXPECT_EQ(steps.goal(Step::out, 0), steps.forwardSize());
  EXPECT_EQ(steps.goal(Step::out, steps.forwardSize()), steps.size());
  EXPECT_EQ(steps.goal(Step::outBack, steps.size()), steps.forwardSize());
  EXPECT_EQ(steps.goal(Step::outBack, steps.forwardSize()), 0u);
}

TEST(Steps, EndsStay) {
  const Steps steps(model("mlp"));
  for (auto step : {Step::into, Step::over, Step::out}) EXPECT_EQ(steps.goal(step, steps.size()), steps.size());
  for (auto step : {Step::intoBack, Step::overBack, Step::outBack}) EXPECT_EQ(steps.goal(step, 0), 0u);
}

TEST(Steps, ACondIsOneStepAndItsBranchMany) {
  const auto analysis = model("cond_hop");
  const Steps steps(analysis);
  const auto [begin, cond] = firstInBody(*analysis, steps);
  ASSERT_TRUE(cond);
  const auto end = steps.goal(Step::over, begin);
  ASSERT_GT(end, begin + 1) << "the branch has several ops";
  EXPECT_EQ(steps.goal(Step::overBack, end), begin);
  for (auto p = begin; p < end; ++p) {
    const auto origin = OriginLinks::origin(*analysis->document, steps.opAt(p));
    EXPECT_EQ(analysis->document->boundSymbol(origin).parent, cond);
  }
  const auto second = steps.goal(Step::into, begin);
  EXPECT_LT(steps.goal(Step::over, second), end);  // the branch's ops one by one
  // From inside the branch's last op the first step out leaves it, or the cond with it.
  auto out = second;
  while (out < end) out = steps.goal(Step::out, out);
  EXPECT_EQ(out, end);
  EXPECT_EQ(steps.goal(Step::outBack, steps.goal(Step::over, second)), begin);
}

// A model under one autocast region is stepped op by op, as one without it.
TEST(Steps, ARegionIsNotSteppedOver) {
  const auto analysis = openModel(sourcePath("tests/data/reports/regions.pt2"));
  const auto& document = *analysis->document;
  const Steps steps(analysis);
  std::set<std::string> regions;
  std::size_t count = 0;
  for (std::size_t p = 0; p < steps.forwardSize(); p = steps.goal(Step::over, p), ++count) {
    const auto origin = OriginLinks::origin(document, steps.opAt(p));
    if (const auto parent = document.boundSymbol(origin).parent) regions.insert(document.symbol(parent).name);
    const auto end = steps.goal(Step::over, p);
    for (auto inside = p; inside < end; ++inside)
      EXPECT_EQ(OriginLinks::origin(document, steps.opAt(inside)), origin) << p;
  }
  EXPECT_EQ(regions,
            (std::set<std::string>{"higher_order.wrap_with_autocast", "higher_order.wrap_with_set_grad_enabled"}));
  EXPECT_GT(count, 6u);
  EXPECT_EQ(steps.goal(Step::out, 0), steps.forwardSize());
}

TEST(Steps, StopOnTheWayAtBreakpoints) {
  const Steps steps(model("mlp"));
  const auto inside = steps.opAt(1);
  const auto stops = [&](BoundSymbolId op) { return op == inside; };
  EXPECT_EQ(steps.goal(Step::over, 0, stops), 1u);
  EXPECT_EQ(steps.goal(Step::overBack, 2, stops), 1u);
  EXPECT_EQ(steps.goal(Step::over, 1, stops), 2u);  // not where it is already
}

TEST(Steps, EveryStepLeadsOnAndStaysInItsTrace) {
  for (const char* name : {"mlp", "cond_hop", "batchnorm_train", "inplace_views", "multi_output"}) {
    const Steps steps(model(name));
    for (std::size_t p = 0; p <= steps.size(); ++p) {
      for (auto step : {Step::into, Step::over, Step::out}) {
        const auto to = steps.goal(step, p);
        EXPECT_GE(to, std::min(p + 1, steps.size())) << name;
        if (p < steps.forwardSize()) EXPECT_LE(to, steps.forwardSize()) << name;
      }
      for (auto step : {Step::intoBack, Step::overBack, Step::outBack}) {
        const auto to = steps.goal(step, p);
        EXPECT_LE(to, p > 0 ? p - 1 : 0) << name;
        if (p > steps.forwardSize()) EXPECT_GE(to, steps.forwardSize()) << name;
      }
      EXPECT_LE(steps.goal(Step::over, p), steps.goal(Step::out, p)) << name;
    }
  }
}

}  // namespace
}  // namespace retrograd::test
