// What the program asks of a GPU and in which order, by a stand-in for NVIDIA's driver that counts.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "core/base/error.h"
#include "core/torch/execution/cuda/summaries.h"
#include "core/torch/execution/cuda/twin.h"
#include "core/torch/execution/op_clock.h"
#include "tests/support/fake_driver/fake_driver.h"

namespace retrograd::test {
namespace {

#define NEED_KERNELS() \
  if (cuda::kernelFile().empty()) GTEST_SKIP() << "this build has no GPU kernels: no nvcc"

class GpuCalls : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const auto& fault : driver.faults()) ADD_FAILURE() << fault;
  }

  template <class T>
  static cuda::Tensor flat(const std::vector<T>& elements, DType dtype) {
    cuda::Tensor tensor{};
    tensor.data = elements.data();
    tensor.elements = static_cast<std::int64_t>(elements.size());
    tensor.dtype = static_cast<std::int32_t>(dtype);
    tensor.contiguous = 1;
    return tensor;
  }

  FakeDriver driver;
};

std::vector<float> ramp(std::size_t count, float step) {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i) * step - 3);
  return numbers;
}

TEST_F(GpuCalls, AValueCostsALaunchAndNothingElseUntilTheEnd) {
  NEED_KERNELS();
  auto& gpu = cuda::gpu(0);
  ASSERT_EQ(gpu.withoutKernels(), "");
  constexpr int values = 50;
  cuda::Summaries summaries(gpu, values);
  std::vector<std::vector<float>> numbers;
  for (int i = 0; i < values; ++i)
    numbers.push_back(ramp(static_cast<std::size_t>(i) * 700, 0.01f * static_cast<float>(i + 1)));
  driver.reset();
  for (const auto& one : numbers) {
    summaries.add(flat(one, DType::f32));
    summaries.launch();
  }
  auto counts = driver.counts();
  EXPECT_EQ(counts.launches, values);
  EXPECT_EQ(counts.allocations + counts.frees + counts.fills + counts.copies + counts.synchronisations, 0);
  const auto found = summaries.take();
  counts = driver.counts();
  EXPECT_EQ(counts.copies, 1);
  EXPECT_EQ(counts.synchronisations, 1);
  EXPECT_EQ(counts.launches, values);
  ASSERT_EQ(found.size(), numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    cuda::Summary twins;
    ASSERT_TRUE(cuda::twin::summarise(flat(numbers[i], DType::f32), twins, 6));
    EXPECT_EQ(found[i].finite, static_cast<std::int64_t>(numbers[i].size()));
    EXPECT_EQ(found[i].mean, twins.mean);
    EXPECT_EQ(found[i].squares, twins.squares);
  }
}

TEST_F(GpuCalls, ValuesOfAnOpThatHaveADtypeShareALaunch) {
  NEED_KERNELS();
  auto& gpu = cuda::gpu(0);
  cuda::Summaries summaries(gpu, 20);
  const auto floats = ramp(5000, 0.5f);
  const std::vector<std::int64_t> integers{1, 2, 3, -4};
  driver.reset();
  for (int i = 0; i < 3; ++i) {
    summaries.add(flat(floats, DType::f32));
    summaries.add(flat(integers, DType::i64));
  }
  summaries.launch();
  EXPECT_EQ(driver.counts().launches, 2);
  EXPECT_EQ(driver.counts().rows, 6);
  for (int i = 0; i < 5; ++i) summaries.add(flat(floats, DType::f32));
  summaries.launch();
  EXPECT_EQ(driver.counts().launches, 4);  // four to a launch
  const auto found = summaries.take();
  ASSERT_EQ(found.size(), 11u);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].finite, i < 6 && i % 2 ? 4 : 5000) << i;
  EXPECT_EQ(found[1].least, -4);
  EXPECT_EQ(found[1].absolutes, 10);
}

TEST_F(GpuCalls, PlacesAreUsedAgain) {
  NEED_KERNELS();
  cuda::Summaries summaries(cuda::gpu(0), 2);
  const auto numbers = ramp(10, 1);
  for (int round = 0; round < 3; ++round) {
    summaries.add(flat(numbers, DType::f32));
    summaries.add(flat(numbers, DType::f32));
    EXPECT_TRUE(summaries.isFull());
    EXPECT_THROW(summaries.add(flat(numbers, DType::f32)), Error);
    EXPECT_EQ(summaries.take().size(), 2u);
  }
}

TEST_F(GpuCalls, EveryDtypeHasItsKernels) {
  NEED_KERNELS();
  auto& gpu = cuda::gpu(0);
  cuda::Counts counts(gpu);
  const std::vector<std::uint64_t> zeros(64, 0);
  for (int i = 0; i < dtypeCount; ++i) {
    auto tensor = flat(zeros, static_cast<DType>(i));
    tensor.elements = 16;
    cuda::Summaries one(gpu, 1);
    one.add(tensor);
    EXPECT_EQ(one.take().front().finite, 16) << shortName(static_cast<DType>(i));
    std::int64_t sum = 0;
    for (auto count : counts.magnitudes(tensor)) sum += count;
    EXPECT_EQ(sum, 16);
    EXPECT_EQ(counts.histogram(tensor, cuda::linearCells(0, 1, 4))[0], 16);
  }
  EXPECT_THROW(counts.histogram(flat(zeros, DType::f32), cuda::linearCells(0, 1, 1 << 20)), Error);
}

TEST_F(GpuCalls, TheNamesOfKernelsAreThoseOfDtypes){
#define EXPECT_NAME(dtype) EXPECT_EQ(shortName(DType::dtype), #dtype);
    RETROGRAD_EACH_DTYPE(EXPECT_NAME)
#undef EXPECT_NAME
}

/// The parts of a fat binary: kind (1: PTX, 2: machine code) and compute capability.
std::set<std::pair<int, int>> partsOf(const std::string& image) {
  const auto at = [&](std::size_t offset, auto number) {
    if (offset + sizeof number > image.size()) throw Error(ErrorCode::badInput, "it ends too early");
    std::memcpy(&number, image.data() + offset, sizeof number);
    return number;
  };
  std::set<std::pair<int, int>> parts;
  for (std::size_t begin = 0; begin + 16 <= image.size();) {
    EXPECT_EQ(at(begin, std::uint32_t()), 0xba55ed50u);
    const auto header = at(begin + 6, std::uint16_t());
    const auto end = begin + header + at(begin + 8, std::uint64_t());
    for (auto part = begin + header; part < end;) {
      parts.emplace(at(part, std::uint16_t()), at(part + 28, std::uint32_t()));
      part += at(part + 4, std::uint32_t()) + at(part + 8, std::uint64_t());
    }
    begin = end;
  }
  return parts;
}

TEST_F(GpuCalls, TheImageHasMachineCodeOfFourGenerationsAndPtx) {
  NEED_KERNELS();
  std::ifstream file(cuda::kernelFile(), std::ios::binary);
  const auto parts = partsOf(std::string{std::istreambuf_iterator<char>(file), {}});
  for (const int capability : {80, 90, 100, 120}) EXPECT_TRUE(parts.contains({2, capability})) << "sm_" << capability;
  EXPECT_TRUE(parts.contains({1, 80})) << "PTX";
}

TEST_F(GpuCalls, AFailureOfTheGpuHasTheDriversWords) {
  NEED_KERNELS();
  auto& gpu = cuda::gpu(0);
  ASSERT_EQ(gpu.withoutKernels(), "");
  const auto numbers = ramp(10, 1);
  {
    driver.failNext("cuMemAlloc_v2", 2);
    EXPECT_THROW(cuda::Summaries(gpu, 5), Error);
  }
  cuda::Summaries summaries(gpu, 5);
  summaries.add(flat(numbers, DType::f32));
  driver.failNext("cuLaunchKernel", 700);
  try {
    summaries.launch();
    FAIL() << "the failure went unnoticed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::execution);
    EXPECT_NE(std::string(e.what()).find("an illegal memory access"), std::string::npos) << e.what();
  }
}

/// The stand-in finds what it is there to find.
TEST(FakeDriver, UnknownKernelsAndFreedMemoryAreFaults) {
  NEED_KERNELS();
  FakeDriver fake;
  auto& gpu = cuda::gpu(0);
  ASSERT_EQ(gpu.withoutKernels(), "");
  EXPECT_THROW(gpu.kernel("summarise_f77"), Error);
  EXPECT_EQ(fake.faults().size(), 1u);
  fake.reset();
  std::uint64_t address = 0;
  {
    const auto memory = gpu.allocate(16);
    address = memory.address();
  }
  int word = 0;
  EXPECT_NE(fake.driver().copyToHost(&word, address, sizeof word, nullptr), 0);
  EXPECT_EQ(fake.faults(), (std::vector<std::string>{"a copy: memory after it was freed"}));
  fake.reset();
  float milliseconds = 0;
  auto *begin = gpu.createEvent(), *end = gpu.createEvent();
  gpu.record(begin);
  gpu.record(end);
  fake.driver().elapsed(&milliseconds, begin, end);
  EXPECT_EQ(fake.faults(), (std::vector<std::string>{"a time that has not come to pass"}));
  gpu.destroyEvent(begin);
  EXPECT_NE(fake.driver().recordEvent(begin, nullptr), 0);
}

const Device cuda0{Device::Type::cuda, 0};

TEST_F(GpuCalls, OpsThatFollowEachOtherShareAnEvent) {
  OpClock clock(cuda0);
  std::vector<double> seconds(3, 0);
  for (auto& s : seconds) {
    clock.begin();
    clock.end(s);
  }
  EXPECT_EQ(driver.counts().eventsRecorded, 4);
  EXPECT_EQ(driver.counts().eventWaits, 0);
  clock.settle();
  EXPECT_EQ(driver.counts().eventWaits, 1);
  for (auto s : seconds) EXPECT_NEAR(s, 1e-3, 1e-9);
}

TEST_F(GpuCalls, EventsComeFromAPool) {
  OpClock clock(cuda0);
  double seconds = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 10; ++i) {
      clock.begin();
      clock.end(seconds);
    }
    clock.settle();
  }
  EXPECT_EQ(driver.counts().eventsRecorded, 55);
  EXPECT_EQ(driver.counts().eventsMade, 11);
}

TEST_F(GpuCalls, WhatCameBetweenIsNotChargedToTheNextOp) {
  OpClock clock(cuda0);
  double first = 0, second = 0;
  clock.begin();
  clock.end(first);
  auto* other = cuda::gpu(0).createEvent();
  for (int i = 0; i < 7; ++i) cuda::gpu(0).record(other);
  clock.interrupted();
  clock.begin();
  clock.end(second);
  clock.settle();
  EXPECT_NEAR(second, 1e-3, 1e-9);
}

TEST_F(GpuCalls, whatIsForgottenIsNotTimed) {
  OpClock clock(cuda0);
  double seconds = 0;
  clock.begin();
  clock.end(seconds);
  const double before = seconds;
  clock.forget();
  clock.settle();
  EXPECT_EQ(seconds, before);
}

TEST_F(GpuCalls, theCpusClockAsksNoEvents) {
  OpClock clock((Device()));
  double seconds = -1;
  clock.begin();
  clock.end(seconds);
  clock.settle();
  EXPECT_GE(seconds, 0);
  EXPECT_EQ(driver.counts().eventsRecorded, 0);
}

}  // namespace
}  // namespace retrograd::test
