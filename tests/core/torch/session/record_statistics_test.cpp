// A recorded run's statistics, and runs that are refused for what they would take.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "core/base/allowed_memory.h"
#include "core/torch/session/record_run.h"
#include "core/torch/session/session.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

/// Gives the memory that runs may take back to the system's choice.
struct Allowed {
  explicit Allowed(std::int64_t bytes) { setRunningMemory(bytes); }
  ~Allowed() { setRunningMemory(-1); }
};

std::string failure(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badUse);
    return e.what();
  }
  return {};
}

TEST(RecordStatistics, S2viewsShareWhatWasFoundUntilTheirMemoryIsWritten) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 4});
  const auto y = m.op("aten.mul.Tensor", {x, 2.0});
  const auto turned = m.op("aten.t.default", {y});
  const auto part = m.op("aten.select.int", {y, 0, 1});
  const auto wide =
      m.op("aten.expand.default", {m.op("aten.unsqueeze.default", {y, 0}), ModelBuilder::list({5, 3, 4})});
  m.output(m.op("aten.add.Tensor",
                {m.op("aten.sum.default", {wide}),
                 m.op("aten.add.Tensor", {m.op("aten.sum.default", {turned}), m.op("aten.sum.default", {part})})}));
  const auto analysis = m.analyse({});
  std::size_t values = 0;
  RecordOptions options;
  std::map<ValueId, TensorData> made;
  options.each = [&](std::size_t, ValueId value, const TensorData& tensor) {
    ++values;
    made.insert_or_assign(value, tensor);
  };
  const auto record = recordRun(*analysis, options);
  EXPECT_GT(values, 8u);
  for (const auto& [value, tensor] : made) {  // each as if it was alone
    if (tensor.meta.dtype != DType::f32) continue;
    const auto* numbers = reinterpret_cast<const float*>(tensor.data);
    double squares = 0, least = numbers[0];
    for (std::int64_t i = 0; i < tensor.meta.elements(); ++i)
      squares += double{numbers[i]} * numbers[i], least = std::min<double>(least, numbers[i]);
    const auto& s = record.values[value].statistics;
    EXPECT_EQ(s.elements, tensor.meta.elements());
    EXPECT_NEAR(s.norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
    EXPECT_EQ(s.min, least);
  }
}

TEST(RecordStatistics, K4aRunThatTakesMoreThanIsAllowedIsRefusedWithTheFigure) {
  ModelBuilder m;
  const auto x = m.input("x", {5000, 5000});  // 100 MB a value
  const auto y = m.op("aten.exp.default", {m.op("aten.sin.default", {x})});
  m.output(m.op("aten.sum.default", {y}));
  const auto analysis = m.analyse({});
  Session session(analysis);
  {
    const Allowed allowed(50'000'000);
    const auto message = failure([&] { session.runTo(session.size()); });
    EXPECT_NE(message.find("the run would take 0."), std::string::npos) << message;
    EXPECT_NE(message.find("0.1 GB are allowed"), std::string::npos) << message;
    EXPECT_NE(message.find("--running-memory"), std::string::npos) << message;
    EXPECT_EQ(session.position(), 0u);
    EXPECT_NE(failure([&] { session.continueTo(session.size()); }), "");
    EXPECT_NE(failure([&] { recordRun(*analysis); }), "");
  }
  const Allowed allowed(1'000'000'000);
  EXPECT_EQ(session.runTo(session.size()), StopReason::cursor);
}

}  // namespace
}  // namespace retrograd::test
