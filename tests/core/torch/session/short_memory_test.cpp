// Wherever memory ends, while a run is begun, at an op or at the copy that is kept of it: what was asked for fails, and
// goes on as if nothing had been once there is memory again.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/questions/intended_infinities.h"
#include "core/torch/execution/memory_budget.h"
#include "core/torch/judging/compare.h"
#include "core/torch/session/op_values.h"
#include "core/torch/session/session.h"
#include "tests/support/writing_model.h"

namespace retrograd::test {
namespace {

using Contents = std::map<ValueId, TensorData>;

Contents contentsOf(const Session& session) {
  Contents found;
  const auto& document = *session.analysis().document;
  for (std::size_t i = 0; i < document.valueCount(); ++i) {
    const ValueId value(static_cast<std::int64_t>(i));
    if (const auto maker = document.value(value).producer; maker && leavesUninitialised(document, maker)) continue;
    if (const auto state = session.state(value); state.present && !state.number) found[value] = session.contents(value);
  }
  return found;
}

void expectSame(const Contents& expected, const Contents& found) {
  EXPECT_EQ(expected.size(), found.size());
  for (const auto& [value, tensor] : expected)
    EXPECT_TRUE(found.contains(value) && identical(tensor, found.at(value))) << "value " << value.index;
}

/// Calls with budgets that rise until the call passes; returns how many did not.
template <class Call>
int withRisingBudgets(Call call) {
  int failed = 0;
  for (std::int64_t bytes = 1;; bytes += 24) {
    bool passed = true;
    call([&](auto run) {
      const MemoryBudget budget(bytes);
      try {
        run();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::execution);
        passed = false;
      }
    });
    if (passed) return failed;
    ++failed;
  }
}

TEST(ShortMemory, ValuesOfAnyOpAreThereOnceThereIsMemory) {
  const auto analysis = writingModel();
  const auto op = analysis->joint.ops.back();
  const auto result = analysis->document->outputs(op)[0];
  const auto expected = OpValues(analysis).at(op)->contents(result, Moment::Side::after);
  OpValuesOptions options;
  options.statistics = true;
  const int failed = withRisingBudgets([&](auto tight) {
    OpValues values(analysis, options);
    tight([&] { values.runAhead(values.size()); });
    EXPECT_TRUE(identical(expected, values.at(op)->contents(result, Moment::Side::after)));
    EXPECT_EQ(values.news().measures.size(), values.size());
  });
  EXPECT_GT(failed, 30);
}

TEST(ShortMemory, ARunIsWhereItWasBeforeTheOpThatHadNone) {
  const auto analysis = writingModel();
  const auto op = analysis->joint.ops.back();
  std::vector<Contents> seen;
  Session whole(analysis);
  for (seen.push_back(contentsOf(whole)); whole.position() < whole.size(); seen.push_back(contentsOf(whole)))
    whole.step();
  const int failed = withRisingBudgets([&](auto tight) {
    Session session(analysis);
    OpValues values(analysis);
    session.setFollower(&values.follower());
    tight([&] { session.runTo(session.size()); });
    expectSame(seen[session.position()], contentsOf(session));
    session.runTo(session.size());
    expectSame(seen.back(), contentsOf(session));
    session.runTo(session.size() / 2);
    expectSame(seen[session.size() / 2], contentsOf(session));
    EXPECT_TRUE(values.at(op)->state(analysis->document->outputs(op)[0], Moment::Side::after).present);
  });
  EXPECT_GT(failed, 30);
}

}  // namespace
}  // namespace retrograd::test
