// Runs on a GPU: a simulated one (tests/support/played_gpu, as ctest's `played_gpu` has it), or a real one. Skipped
// where there is neither. Where the GPU is played, calls of the driver are counted.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/torch/execution/device.h"
#include "core/torch/session/op_values.h"
#include "core/torch/session/session.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/recorded_generator.h"
#include "tests/support/fake_driver/fake_driver.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

const Device cuda0{Device::Type::cuda, 0};

bool isPlayed() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver && dlsym(driver, "fakeCudaCounts");
}

class OnAGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto status = deviceStatus(cuda0); !status.available) GTEST_SKIP() << status.reason;
    if (isPlayed()) driver = std::make_unique<FakeDriver>();
  }
  void TearDown() override {
    if (!driver) return;
    for (const auto& fault : driver->faults()) ADD_FAILURE() << fault;
  }
  std::unique_ptr<FakeDriver> driver;  // null on a real GPU
};

DerivationRequest on(Device device) {
  DerivationRequest request;
  request.device = device;
  return request;
}

/// sin of sin of ... of a parameter, with a view of it in between.
std::shared_ptr<const Analysis> chain(Device device, int length) {
  ModelBuilder m;
  auto value = m.parameter("w", {6, 4});
  for (int i = 0; i < length; ++i) {
    value = m.op("aten.sin.default", {value});
    if (i % 3 == 1) value = m.op("aten.t.default", {value});
  }
  m.output(value);
  return m.analyse(on(device));
}

OpValuesOptions withStatistics() {
  OpValuesOptions options;
  options.statistics = true;
  return options;
}

TEST_F(OnAGpu, TheWindowsStatisticsOfManyOpsAreCopiedOnce) {
  OpValues there(chain(cuda0, 30), withStatistics()), here(chain(Device(), 30), withStatistics());
  there.runAhead(1);
  static_cast<void>(there.news());  // the memory of the run
  if (driver) driver->reset();
  there.runAhead(there.size());
  here.runAhead(here.size());
  if (driver) {
    const auto counts = driver->counts();
    EXPECT_GT(counts.launches, 30);
    EXPECT_LE(counts.launches, static_cast<int>(there.size()));
    EXPECT_EQ(counts.allocations + counts.copies + counts.synchronisations, 0);
  }
  const auto news = there.news();
  if (driver) {
    EXPECT_EQ(driver->counts().copies, 1);
    EXPECT_EQ(driver->counts().synchronisations, 1);
  }
  std::map<ValueId, TensorStatistics> expected;
  for (const auto& [value, statistics] : here.news().values) expected[value] = statistics;
  ASSERT_GT(news.values.size(), 40u);
  for (const auto& [value, statistics] : news.values) {
    EXPECT_NEAR(statistics.mean, expected.at(value).mean, 1e-6);
    EXPECT_EQ(statistics.max, expected.at(value).max);
    EXPECT_EQ(statistics.elements, 24);
  }
}

/// Contents put in by hand run on from there; what shares their memory has other numbers then.
void expectNumbersOfWhatWasPutIn(Device device) {
  const auto analysis = chain(device, 5);
  OpValues values(analysis, withStatistics());
  Session session(analysis);
  session.setFollower(&values.follower());
  session.runTo(session.size());  // memory of this run is used again
  session.runTo(3);
  static_cast<void>(values.news());
  const auto viewed = analysis->document->outputs(session.opAt(2)).front();  // of a transposition
  const auto halves = keepTensor(at::full(session.contents(viewed).meta.sizes, 0.5, at::kFloat));
  session.setContents(viewed, halves);
  session.runTo(session.size());
  std::map<ValueId, TensorStatistics> found;
  for (const auto& [value, statistics] : values.news().values) found[value] = statistics;
  double expected = std::sin(0.5);
  for (std::size_t i = 3; i < 7; ++i) {  // sin, sin, sin, a view
    const auto after = analysis->document->outputs(session.opAt(i)).front();
    EXPECT_NEAR(found.at(after).mean, expected, 1e-6) << i;
    EXPECT_NEAR(found.at(after).max, expected, 1e-6) << i;
    if (i < 5) expected = std::sin(expected);
  }
}

TEST_F(OnAGpu, ContentsPutInByHandHaveNewNumbers) { expectNumbersOfWhatWasPutIn(cuda0); }
TEST(OnTheCpu, contentsPutInByHandHaveNewNumbers) { expectNumbersOfWhatWasPutIn(Device()); }

/// What `torch.manual_seed(0); torch.rand(6, device='cuda')` gives, and a second call of it.
TEST_F(OnAGpu, ARecordedGeneratorOfAGpuDrawsWhatTheGpuDrew) {
  const std::vector<std::vector<double>> drawn{{0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967},
                                               {0.9722, 0.7910, 0.4690, 0.3300, 0.3345, 0.3783}};
  const auto cpu = keepTensor(at::Generator(at::globalContext().defaultGenerator(c10::kCPU)).get_state());
  for (std::size_t call = 0; call < drawn.size(); ++call) {
    const auto state =
        keepTensor(at::tensor({std::int64_t{0}, static_cast<std::int64_t>(4 * call)}, at::kLong).view(at::kByte));
    ModelBuilder m;
    m.output(m.op("aten.rand_like.default", {m.input("x", {6})}));
    auto request = on(cuda0);
    request.seed = seedOfStates({cpu, {{0, state}}});
    Session session(m.analyse(request));
    session.runTo(session.size());
    const auto result = session.results().at(0);
    ASSERT_TRUE(result);
    const auto numbers = borrowTensor(*result);
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(numbers[static_cast<std::int64_t>(i)].item<double>(), drawn[call][i], 5.1e-5) << "call " << call;
  }
}

TEST_F(OnAGpu, AProductAsTheFirstOpOfAThreadWarnsOfNoContext) {
  struct Heard : c10::WarningHandler {
    void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
    std::vector<std::string> texts;
  } heard;
  std::thread([&heard] {
    c10::WarningUtils::set_warning_handler(&heard);
    requireDevice(cuda0);
    TORCH_WARN("Attempting to run cuBLAS, but there was no current CUDA context! Attempting to set it...");
    TORCH_WARN("something else");
  }).join();
  EXPECT_EQ(heard.texts, std::vector<std::string>{"something else"});
}

}  // namespace
}  // namespace retrograd::test
