#include "core/torch/tracing/recorded_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {
namespace {

TEST(RecordedGenerator, aSeedOfAStateBeginsAtThatState) {
  auto generator = at::detail::createCPUGenerator(11);
  static_cast<void>(at::rand({1000}, generator));  // somewhere in a training loop
  const auto state = generator.get_state();
  const auto expected = at::rand({5}, generator);
  const auto seed = seedOfStates({keepTensor(state), {}});
  EXPECT_EQ(seed, seedOfStates({keepTensor(state), {}}));
  EXPECT_TRUE(at::equal(seededState(seed), state));
  const KeepGenerator keep(seed);
  EXPECT_TRUE(at::equal(at::rand({5}), expected));
  ASSERT_TRUE(statesAsText(seed));
  EXPECT_EQ(seedOfStates(*statesAsText(seed)), seed);
  EXPECT_FALSE(statesAsText(11)) << "a seed of its own";
}

TEST(RecordedGenerator, otherBytesAreRefused) {
  for (const std::int64_t size : {0, 16, 5055, 5056, 6000}) {
    auto bytes = at::full({size}, 255, at::kByte);
    EXPECT_THROW(seedOfStates({keepTensor(bytes), {}}), Error) << size;
  }
  EXPECT_THROW(seedOfStates({keepTensor(at::zeros({5056})), {}}), Error) << "no bytes";
  EXPECT_THROW(seedOfStates(std::string("0x")), Error);
}

/// The state of a GPU's generator: a seed and an offset.
TensorData stateOfGpu(std::int64_t seed, std::int64_t offset) {
  return keepTensor(at::tensor({seed, offset}, at::kLong).view(at::kByte));
}

bool isState(const at::Tensor& state, const TensorData& expected) { return at::equal(state, borrowTensor(expected)); }

TEST(RecordedGenerator, TheStateOfAGpuIsKeptWithThatOfTheCpu) {
  const auto cpu = keepTensor(at::detail::createCPUGenerator(11).get_state());
  const auto first = stateOfGpu(5, 40), second = stateOfGpu(6, 4);
  const auto seed = seedOfStates({cpu, {{0, first}, {2, second}}});
  EXPECT_NE(seed, seedOfStates({cpu, {}}));
  EXPECT_NE(seed, seedOfStates({cpu, {{0, stateOfGpu(5, 44)}, {2, second}}}));
  EXPECT_TRUE(isState(seededState(seed), cpu));
  EXPECT_TRUE(isState(seededState(seed, c10::Device(c10::kCUDA, 0)), first));
  EXPECT_TRUE(isState(seededState(seed, c10::Device(c10::kCUDA, 2)), second));
  EXPECT_TRUE(isState(seededState(seed, c10::Device(c10::kCUDA, 1)), first)) << "a machine with other GPUs";
  ASSERT_TRUE(statesAsText(seed));
  EXPECT_EQ(seedOfStates(*statesAsText(seed)), seed);
}

TEST(RecordedGenerator, OtherBytesOfAGpuAreRefused) {
  const auto cpu = keepTensor(at::detail::createCPUGenerator(11).get_state());
  EXPECT_THROW(seedOfStates({cpu, {{0, keepTensor(at::zeros({8}, at::kByte))}}}), Error);
  EXPECT_THROW(seedOfStates({std::nullopt, {{0, stateOfGpu(1, 0)}}}), Error);
  const auto text = *statesAsText(seedOfStates({cpu, {}}));
  EXPECT_THROW(seedOfStates(text + " cuda.x=00"), Error);
  EXPECT_THROW(seedOfStates(text + " cuda.0=00"), Error);
}

}  // namespace
}  // namespace retrograd
