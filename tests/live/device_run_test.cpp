// What a run on a GPU does around its ops, with a guard in LibTorch's place that plays the GPU: waiting, what a failure
// says.
#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

#include "core/torch/execution/device.h"
#include "core/torch/execution/evaluator.h"
#include "core/trace/relocate.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

class PlayedGpu final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device device) const override { return device; }
  c10::Device getDevice() const override { return {c10::kCUDA, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void synchronizeDevice(const c10::DeviceIndex) const override {
    ++waits;
    TORCH_CHECK(!fails, "CUDA error: an illegal memory access was encountered");
  }

  mutable int waits = 0;
  bool fails = false;
};

/// Takes the place of the GPU while a test runs.
class DeviceRun : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = c10::impl::hasDeviceGuardImpl(c10::kCUDA) ? c10::impl::getDeviceGuardImpl(c10::kCUDA) : nullptr;
    c10::impl::DeviceGuardImplRegistrar(c10::kCUDA, &gpu);
  }
  void TearDown() override { c10::impl::DeviceGuardImplRegistrar(c10::kCUDA, before_); }

  /// sin(x) on the GPU, with a tensor on the CPU behind it.
  void runSin(bool synchronous) {
    ModelBuilder m;
    const auto x = m.input("x", {2});
    m.op("aten.sin.default", {x});
    const auto op = m.lastOp();
    relocate(m.document(), Device{Device::Type::cuda, 0});
    Evaluator evaluator(m.document(), 0);
    evaluator.setSynchronous(synchronous);
    evaluator.bind(x, at::ones({2}));
    evaluator.run(op);
  }

  PlayedGpu gpu;

 private:
  const c10::impl::DeviceGuardImplInterface* before_ = nullptr;
};

TEST_F(DeviceRun, onlyASynchronousRunWaitsForEachOp) {
  runSin(false);
  EXPECT_EQ(gpu.waits, 0);
  runSin(true);
  EXPECT_EQ(gpu.waits, 1);
}

TEST_F(DeviceRun, aFailureNamesTheOpItsSchemaAndTheDevice) {
  gpu.fails = true;
  try {
    runSin(true);
    FAIL() << "the failure went unnoticed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::execution);
    EXPECT_EQ(e.place(), "torch.ops.aten.sin.default");
    for (const auto* part : {"on cuda:0", "illegal memory access", "aten::sin(Tensor self) -> Tensor"})
      EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
  }
}

TEST(FullPrecision, TF32IsOffWithinAComparisonAndThenAsBefore) {
  auto& context = at::globalContext();
  const bool convolutions = context.allowTF32CuDNN(), products = context.allowTF32CuBLAS();
  {
    const FullPrecision scope;
    EXPECT_FALSE(context.allowTF32CuDNN());
    EXPECT_FALSE(context.allowTF32CuBLAS());
  }
  EXPECT_EQ(context.allowTF32CuDNN(), convolutions);
  EXPECT_EQ(context.allowTF32CuBLAS(), products);
}

}  // namespace
}  // namespace retrograd::test
