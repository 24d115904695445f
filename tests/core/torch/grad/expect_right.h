#pragma once
#include <gtest/gtest.h>

#include "core/torch/analysis/joint_run.h"
#include "core/torch/judging/compare.h"
#include "core/torch/session/session.h"
#include "core/trace/verifier.h"
#include "tests/support/comparison.h"

namespace retrograd::test {

/// Every trace verifies, and forward and backward run apart give what LibTorch's own autograd gives.
inline void expectRight(const std::shared_ptr<const Analysis>& analysis, double tolerance = 1e-5) {
  ASSERT_TRUE(analysis->derived()) << (analysis->problems.empty() ? "" : analysis->problems[0].message);
  for (const auto* trace : {&analysis->joint, &analysis->forward, &analysis->backward})
    for (const auto& problem : verify(*analysis->document, *trace))
      ADD_FAILURE() << trace->name << ": " << problem.place << ": " << problem.message;
  Session session(analysis);
  session.runTo(session.size());
  const auto eager = runEager(*analysis);
  test::Comparison comparison;
  const auto results = session.results();
  ASSERT_EQ(results.size(), eager.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i] && eager.outputs[i]) comparison.add("output", *results[i], *eager.outputs[i]);
  const auto gradients = session.gradients();
  for (const auto& [name, tensor] : eager.gradients) {
    ASSERT_TRUE(gradients.contains(name)) << name;
    comparison.add(name, gradients.at(name), tensor);
  }
  for (const auto& [name, tensor] : gradients) EXPECT_TRUE(eager.gradients.contains(name) || isZero(tensor)) << name;
  EXPECT_LE(comparison.error(), tolerance) << comparison.worst() << comparison.failure();
}

inline const BoundSymbol& bound(const Analysis& a, BoundSymbolId op) { return a.document->boundSymbol(op); }

}  // namespace retrograd::test
