// Comparing devices, tried with the CPU on both sides.
#include "core/torch/judging/other_device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/torch/analysis/joint_run.h"
#include "core/torch/checking/check.h"
#include "core/torch/execution/device.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "tests/core/formats/cases.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"

namespace retrograd::test {
namespace {

constexpr const char* plain = R"(
def computation(x, w):
    # x: "f32[4, 3]"
    # w: "f32[3]", parameter
    a = aten.mul.Tensor(x, w)
    y = aten.sin(a)
    return y
)";

constexpr const char* drawing = R"(
def computation(x):
    # x: "f32[64]"
    y = aten.dropout(x, 0.5, True)
    return y
)";

TensorData moved(const TensorData& tensor, float by) {
  auto bytes = std::make_shared<std::vector<std::byte>>(tensor.data, tensor.data + tensor.bytes);
  float first = 0;
  std::memcpy(&first, bytes->data(), sizeof first);
  first += by;
  std::memcpy(bytes->data(), &first, sizeof first);
  return {tensor.meta, bytes->data(), bytes->size(), bytes};
}

// What is derived again gives the cotangent of a second derivative another name.
TEST(OtherDevice, ResultsOfHigherOrdersHaveTheSameNamesOnBoth) {
  DerivationRequest request;
  request.order = 2;
  const auto here = openModel(writeTemporary("plain.txt", plain), request);
  ASSERT_TRUE(here->derived());
  OtherDevice there(*here, Device(), {});
  const auto ours = namedResults(*here, runJoint(*here)), theirs = there.run({});
  ASSERT_EQ(ours.size(), theirs.size());
  bool hasCotangent = false;
  for (const auto& [name, tensor] : ours) {
    ASSERT_TRUE(theirs.contains(name)) << name;
    EXPECT_TRUE(identical(tensor, theirs.at(name))) << name;
    hasCotangent |= name.find("cotangent") != std::string::npos;
  }
  EXPECT_TRUE(hasCotangent);
}

TEST(OtherDevice, TheDistanceOfLibTorchsOwnRunsCounts) {
  const auto here = openModel(writeTemporary("plain.txt", plain));
  OtherDevice there(*here, Device(), {});
  auto eager = namedResults(*here, runEager(*here));
  const auto rounding = there.apart("out.0", &eager);
  EXPECT_GT(rounding, 0) << "the noise of the other device";
  EXPECT_LT(rounding, 1e-5);
  eager["out.0"] = moved(eager["out.0"], 0.25f);  // an op that is less precise here
  EXPECT_NEAR(there.apart("out.0", &eager), 0.25 + rounding, 1e-6);
  EXPECT_LT(there.apart("grad.p.w", &eager), 1e-5) << "other tensors";
  EXPECT_GT(there.apart("out.0", nullptr), 0);
}

/// A half-precision transform of so many elements.
std::shared_ptr<const Analysis> transform(std::int64_t size, DType dtype) {
  ModelBuilder m;
  m.output(m.op("aten.view_as_real.default",
                {m.op("aten._fft_r2c.default",
                      {m.input("x", {3, size}, dtype), ModelBuilder::list({1}), 0, Argument::ofBool(true)})}));
  return m.analyse();
}

TEST(OtherDevice, WhatCuFftRefusesIsSaid) {
  const auto refused = refusedByCuda(*transform(12, DType::f16));
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->find("powers of two"), std::string::npos) << *refused;
  EXPECT_NE(refused->find("has 12"), std::string::npos) << *refused;
  EXPECT_FALSE(refusedByCuda(*transform(16, DType::f16)));
  EXPECT_FALSE(refusedByCuda(*transform(12, DType::f32)));
}

TEST(OtherDevice, DrawsOfAnotherDeviceCannotBeComparedByNumbers) {
  DerivationRequest onGpu;
  onGpu.device = Device{Device::Type::cuda, 0};
  const auto path = writeTemporary("drawing.txt", drawing);
  EXPECT_FALSE(drawsElsewhere(*openModel(path), false));
  EXPECT_TRUE(drawsElsewhere(*openModel(path), true));
  EXPECT_TRUE(drawsElsewhere(*openModel(path, onGpu), false));
  EXPECT_FALSE(drawsElsewhere(*openModel(path, onGpu), true));
  EXPECT_FALSE(drawsElsewhere(*openModel(writeTemporary("plain.txt", plain)), true));
}

TEST(OtherDevice, AFolderOfAGpuOpensOnTheFirstThatIsThere) {
  const Device first{Device::Type::cuda, 0}, second{Device::Type::cuda, 1};
  const std::vector<DeviceStatus> none{{Device(), true, {}, {}}, {Device{Device::Type::cuda, -1}, false, {}, "none"}},
      two{{Device(), true, {}, {}}, {first, true, "GPU", {}}, {second, true, "GPU", {}}};
  EXPECT_EQ(deviceAsRecorded("cuda:1", two), first);
  EXPECT_FALSE(deviceAsRecorded("cuda:1", none));
  EXPECT_FALSE(deviceAsRecorded("", two));
  EXPECT_FALSE(deviceAsRecorded("cpu", two));
}

}  // namespace
}  // namespace retrograd::test
