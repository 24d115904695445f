// Attention masks hold -inf on purpose: no one who looks for a NaN or Inf looks for them.
#include "core/questions/intended_infinities.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/questions/nan_walk.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/session/record_run.h"
#include "core/torch/session/session.h"
#include "tests/support/float_tensor.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

DerivationRequest withX(std::vector<std::int64_t> sizes, std::vector<float> numbers) {
  DerivationRequest request;
  request.inputs["x"] = floatTensor(std::move(sizes), std::move(numbers));
  return request;
}

/// Scores with a causal mask: triu(full_like(x, -inf), `diagonal`) added, and the softmax of that. With diagonal 0 the
/// last row is masked as a whole.
struct Attention {
  ModelBuilder m;
  ValueId x, masked;
  BoundSymbolId softmax;
  explicit Attention(int diagonal) {
    x = m.input("x", {2, 2});
    const auto mask = m.op("aten.triu.default", {m.op("aten.full_like.default", {x, -infinity}), diagonal});
    masked = m.op("aten.add.Tensor", {x, mask});
    const auto weights = m.op("aten._softmax.default", {masked, -1, Argument::ofBool(false)});
    softmax = m.lastOp();
    m.output(m.op("aten.sum.default", {weights}));
  }
};

StopReason runWithBreakOnBadNumber(const std::shared_ptr<const Analysis>& analysis) {
  Session session(analysis);
  session.setBreakOnBadNumber(true);
  return session.continueTo(session.size());
}

TEST(IntendedInfinities, AMaskIsNotAFault) {
  Attention a(1);
  const auto analysis = a.m.analyse(withX({2, 2}, {1, 2, 3, 4}));
  const auto record = recordRun(*analysis);
  std::size_t infinite = 0;
  for (auto op : analysis->joint.ops)
    for (auto output : analysis->document->outputs(op)) infinite += record.of(output).bad();
  EXPECT_GE(infinite, 3u);  // full_like, triu, add
  EXPECT_FALSE(firstBadValue(*analysis, record));
  EXPECT_TRUE(walkToRoots(*analysis, record).path.empty());
  EXPECT_EQ(runWithBreakOnBadNumber(analysis), StopReason::end);
}

// The infinities are meant, the NaN that softmax makes of a row with nothing else is not: it is the root, and the
// explanation names the mask.
TEST(IntendedInfinities, ARowThatIsMaskedAsAWholeIsFoundWhereItTurnsToNaN) {
  Attention a(0);
  const auto analysis = a.m.analyse(withX({2, 2}, {1, 2, 3, 4}));
  const auto record = recordRun(*analysis);
  const auto walk = walkToRoot(*analysis, record, analysis->joint.outputs[0]);
  EXPECT_EQ(walk.forward, a.softmax);
  EXPECT_NE(walk.explanation.find("3 of 4 elements are infinite"), std::string::npos) << walk.explanation;
  EXPECT_EQ(runWithBreakOnBadNumber(analysis), StopReason::badNumber);
}

// What computes passes nothing on: an exp that overflows behind a mask is found.
TEST(IntendedInfinities, AnOverflowBehindAMaskIsAFault) {
  Attention a(1);
  const auto x = a.m.op("aten.exp.default", {a.m.op("aten.mul.Tensor", {a.masked, 100.0})});
  const auto exp = a.m.lastOp();
  a.m.output(x);
  const auto analysis = a.m.analyse(withX({2, 2}, {1, 2, 3, 4}));
  const IntendedInfinities intended(*analysis);
  const auto record = recordRun(*analysis);
  BoundSymbolId found;
  for (auto op : analysis->joint.ops)
    for (auto output : analysis->document->outputs(op))
      if (!found && record.of(output).recorded && intended.isFault(output, record.of(output).statistics) &&
          OriginLinks::origin(*analysis->document, op) == exp)
        found = op;
  EXPECT_TRUE(found);
}

// Of an input, -inf next to zeros is a mask; next to numbers above zero it is damaged data.
TEST(IntendedInfinities, AnInputIsAMaskWhereNothingInItIsAboveZero) {
  for (const float other : {0.0F, 1.0F}) {
    ModelBuilder m;
    m.output(m.op("aten.sum.default", {m.op("aten.exp.default", {m.input("x", {2})})}));
    const auto analysis = m.analyse(withX({2}, {-std::numeric_limits<float>::infinity(), other}));
    const auto record = recordRun(*analysis);
    EXPECT_EQ(firstBadValue(*analysis, record).valid(), other > 0) << other;
  }
}

// Who asks where a mask comes from is led there.
TEST(IntendedInfinities, AWalkFromAMaskLeadsToItsLiteral) {
  Attention a(1);
  const auto analysis = a.m.analyse(withX({2, 2}, {1, 2, 3, 4}));
  const auto record = recordRun(*analysis);
  ValueId masked;
  for (auto op : analysis->joint.ops)
    if (OriginLinks::origin(*analysis->document, op) == analysis->document->value(a.masked).producer && !masked)
      masked = analysis->document->outputs(op)[0];
  ASSERT_TRUE(masked);
  const auto walk = walkToRoot(*analysis, record, masked);
  EXPECT_EQ(analysis->document->opName(walk.root), "torch.ops.aten.full_like.default");
}

}  // namespace
}  // namespace retrograd::test
