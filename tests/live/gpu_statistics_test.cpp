// Statistics of the values of a run on a GPU, whose memory is the host's here: what RunStatistics asks of the driver's
// stand-in for tensors that claim the GPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <deque>

#include "core/torch/execution/cuda/gpu.h"
#include "core/torch/execution/statistics.h"
#include "tests/support/fake_driver/fake_driver.h"

namespace retrograd::test {
namespace {

/// Memory of a tensor of the CPU as one of the GPU.
at::Tensor claimed(const at::Tensor& tensor) {
  const auto owner = std::make_shared<at::Tensor>(tensor);
  return at::for_blob(tensor.data_ptr(), tensor.sizes())
      .strides(tensor.strides())
      .deleter([owner](void*) {})
      .target_device(c10::Device(c10::kCUDA, 0))
      .options(tensor.options().device(c10::Device(c10::kCUDA, 0)))
      .make_tensor();
}

class GpuStatistics : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::kernelFile().empty()) GTEST_SKIP() << "this build has no GPU kernels: no nvcc";
  }
  void TearDown() override {
    for (const auto& fault : driver.faults()) ADD_FAILURE() << fault;
  }
  FakeDriver driver;
};

TEST_F(GpuStatistics, ARunCostsALaunchForEachValueAndOneCopyAtItsEnd) {
  constexpr int ops = 300;
  std::vector<at::Tensor> values;
  for (int i = 0; i < ops; ++i) values.push_back(at::full({1 + i % 7, 40}, i, at::kFloat));
  std::deque<TensorStatistics> results(ops);
  RunStatistics statistics(ops);
  statistics.add(StorageId(0), claimed(values[0]), results[0]);
  statistics.endOp();  // the first value takes the memory of the run
  driver.reset();
  for (int i = 1; i < ops; ++i) {
    statistics.add(StorageId(i), claimed(values[static_cast<std::size_t>(i)]), results[static_cast<std::size_t>(i)]);
    statistics.endOp();
  }
  auto counts = driver.counts();
  EXPECT_EQ(counts.launches, ops - 1);
  EXPECT_EQ(counts.allocations + counts.frees + counts.fills + counts.copies + counts.synchronisations, 0);
  statistics.settle();
  counts = driver.counts();
  EXPECT_EQ(counts.copies, 1);
  EXPECT_EQ(counts.synchronisations, 1);
  for (int i = 0; i < ops; ++i) {
    EXPECT_EQ(results[static_cast<std::size_t>(i)].mean, i);
    EXPECT_EQ(results[static_cast<std::size_t>(i)].elements, (1 + i % 7) * 40);
  }
}

TEST_F(GpuStatistics, ViewsOfTheSameElementsCostNoLaunchUntilTheyAreWritten) {
  const auto matrix = at::arange(12, at::kFloat).view({3, 4});
  std::deque<TensorStatistics> results(5);
  RunStatistics statistics(5);
  statistics.add(StorageId(1), claimed(matrix), results[0]);
  statistics.endOp();
  driver.reset();
  statistics.add(StorageId(1), claimed(matrix.t()), results[1]);
  statistics.add(StorageId(1), claimed(matrix.view({12})), results[2]);
  statistics.endOp();
  EXPECT_EQ(driver.counts().launches, 0);
  matrix.fill_(2);  // the kernel has run: the stand-in's stream is done with what was launched
  statistics.written(StorageId(1));
  statistics.add(StorageId(1), claimed(matrix), results[3]);
  statistics.endOp();
  EXPECT_EQ(driver.counts().launches, 1);
  statistics.settle();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)].max, 11);
  EXPECT_EQ(results[3].max, 2);
}

TEST_F(GpuStatistics, ExpandedElementsAreReadOnceAndCountEach) {
  const auto row = at::arange(4, at::kDouble);
  std::deque<TensorStatistics> results(2);
  RunStatistics statistics(2);
  statistics.add(StorageId(1), claimed(row.expand({1000, 4})), results[0]);
  statistics.settle();
  EXPECT_EQ(results[0].elements, 4000);
  EXPECT_EQ(results[0].zeros, 1000);
  EXPECT_EQ(results[0].norm1, 6000);
  EXPECT_DOUBLE_EQ(results[0].norm, std::sqrt(14000));
}

TEST_F(GpuStatistics, MoreValuesThanWereSaidAreCopiedInBetween) {
  std::vector<at::Tensor> values;
  for (int i = 0; i < 7; ++i) values.push_back(at::full({5}, i, at::kInt));
  std::deque<TensorStatistics> results(7);
  RunStatistics statistics(3);
  for (std::size_t i = 0; i < 7; ++i) {
    statistics.add(StorageId(static_cast<std::int64_t>(i)), claimed(values[i]), results[i]);
    statistics.endOp();
  }
  statistics.settle();
  EXPECT_EQ(driver.counts().copies, 3);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(results[i].mean, static_cast<double>(i));
}

TEST_F(GpuStatistics, AHistogramOfTheWholeRangeOfDoublesStaysInItsCells) {
  const double greatest = std::numeric_limits<double>::max();
  const auto numbers = at::tensor({-greatest, greatest, 0.0, 1.0, greatest / 2}, at::kDouble);
  EXPECT_EQ(computeHistogram(claimed(numbers), 4), (std::vector<std::int64_t>{1, 0, 2, 2}));
  EXPECT_EQ(computeMagnitudes(claimed(numbers)), computeMagnitudes(numbers));
}

}  // namespace
}  // namespace retrograd::test
