// The kernels on a real GPU, without LibTorch: they give what their twin on the CPU gives. Skipped where there is none.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/error.h"
#include "core/torch/execution/cuda/summaries.h"
#include "core/torch/execution/cuda/twin.h"

namespace retrograd {
namespace {

/// Why there are no kernels to run here; empty where there are.
std::string withoutGpu() {
  try {
    if (cuda::driver().nameOf(0) == "Stand-in") return "the GPU is played: its kernels are the twin";
    return cuda::gpu(0).withoutKernels();
  } catch (const Error& e) {
    return e.what();
  }
}

#define NEED_GPU() \
  if (const auto without = withoutGpu(); !without.empty()) GTEST_SKIP() << without

/// Bytes on the GPU.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<unsigned char>& bytes)
      : memory_(cuda::gpu(0).allocate(std::max<std::size_t>(bytes.size(), 1))) {
    if (!bytes.empty()) cuda::gpu(0).copyToDevice(memory_, bytes.data(), bytes.size());
  }
  char* memory() const { return reinterpret_cast<char*>(memory_.address()); }

 private:
  cuda::Memory memory_;
};

std::vector<unsigned char> randomBytes(std::size_t count) {
  std::mt19937 generator(11);
  std::vector<unsigned char> bytes(count);
  for (auto& b : bytes) b = static_cast<unsigned char>(generator());
  return bytes;
}

cuda::Summary summaryOnGpu(const cuda::Tensor& tensor) {
  cuda::Summaries summaries(cuda::gpu(0), 1);
  summaries.add(tensor);
  return summaries.take().front();
}

/// As the twin of this GPU makes it.
cuda::Summary summaryOfTwin(const cuda::Tensor& tensor) {
  const auto kernel = cuda::gpu(0).kernel("summarise_" + std::string(shortName(static_cast<DType>(tensor.dtype))));
  cuda::Summary summary;
  EXPECT_TRUE(cuda::twin::summarise(tensor, summary, std::min(kernel.resident, cuda::mostBlocks)));
  return summary;
}

void expectSame(const cuda::Summary& a, const cuda::Summary& b) {
  EXPECT_EQ(a.finite, b.finite);
  EXPECT_EQ(a.zeros, b.zeros);
  EXPECT_EQ(a.subnormal, b.subnormal);
  EXPECT_EQ(a.infinite, b.infinite);
  EXPECT_EQ(a.nan, b.nan);
  const auto same = [](double x, double y, const char* what) {
    if (std::isnan(x) && std::isnan(y)) return;
    EXPECT_TRUE(x == y || std::abs(x - y) <= 1e-13 * std::max(std::abs(x), std::abs(y)))
        << what << ": " << x << " and " << y;
  };
  same(a.least, b.least, "least");
  same(a.greatest, b.greatest, "greatest");
  same(a.mean, b.mean, "mean");
  same(a.squares, b.squares, "squares");
  same(a.norm, b.norm, "norm");
}

TEST(Gpu, KernelsGiveWhatTheirTwinGives) {
  NEED_GPU();
  cuda::Counts onGpu(cuda::gpu(0));
  for (int dtype = 0; dtype < dtypeCount; ++dtype)
    for (const std::int64_t elements : {0, 1, 255, 100'003, 3'000'001}) {
      SCOPED_TRACE(std::string(shortName(static_cast<DType>(dtype))) + " x " + std::to_string(elements));
      const auto item = itemSize(static_cast<DType>(dtype));
      const auto bytes = randomBytes(static_cast<std::size_t>(elements * item));
      const OnDevice device(bytes);
      cuda::Tensor here{}, there{};
      here.elements = elements;
      here.dtype = dtype;
      here.contiguous = 1;
      there = here;
      here.data = bytes.data();
      there.data = device.memory();
      const auto ours = summaryOnGpu(there), twins = summaryOfTwin(here);
      expectSame(ours, twins);
      std::vector<std::int64_t> magnitudes(cuda::magnitudeCells, 0);
      ASSERT_TRUE(cuda::twin::magnitudes(here, magnitudes.data()));
      EXPECT_EQ(onGpu.magnitudes(there), magnitudes);
      if (ours.finite == 0) continue;
      const auto cells = cuda::linearCells(twins.least, twins.greatest, 20);
      std::vector<std::int64_t> counts(20, 0);
      ASSERT_TRUE(cuda::twin::histogram(here, cells, counts.data()));
      EXPECT_EQ(onGpu.histogram(there, cells), counts);
    }
}

TEST(Gpu, StridedAndShiftedTensors) {
  NEED_GPU();
  const auto bytes = randomBytes(4 * 6000);
  const OnDevice device(bytes);
  cuda::Tensor tensor{};
  tensor.dtype = static_cast<std::int32_t>(DType::i32);
  tensor.elements = 600;
  tensor.dims = 3;
  const std::int64_t sizes[]{3, 20, 10}, strides[]{1, 150, 10};
  std::copy_n(sizes, 3, tensor.sizes);
  std::copy_n(strides, 3, tensor.strides);
  for (const int contiguous : {0, 1})
    for (const std::int64_t shift : {0, 4, 12}) {
      tensor.contiguous = contiguous;
      tensor.data = device.memory() + shift;
      const auto ours = summaryOnGpu(tensor);
      tensor.data = bytes.data() + shift;
      expectSame(ours, summaryOfTwin(tensor));
    }
}

/// Also where several tensors share a launch, and after thousands of launches.
TEST(Gpu, TheSameTensorGivesTheSameBits) {
  NEED_GPU();
  const auto bytes = randomBytes(8 << 20);
  const OnDevice device(bytes);
  const cuda::Tensor tensor{device.memory(), (8 << 20) / 4, {}, {}, 0, static_cast<std::int32_t>(DType::f32), 1};
  const auto first = summaryOnGpu(tensor);
  cuda::Summaries summaries(cuda::gpu(0), 4000);
  while (!summaries.isFull()) {
    for (int i = 0; i < 3 && !summaries.isFull(); ++i) summaries.add(tensor);
    summaries.launch();
  }
  for (const auto& again : summaries.take()) {
    ASSERT_EQ(first.mean, again.mean);
    ASSERT_EQ(first.squares, again.squares);
    ASSERT_EQ(first.norm, again.norm);
    ASSERT_EQ(first.nan, again.nan);
  }
}

TEST(Gpu, EveryKernelIsInTheImage) {
  NEED_GPU();
  for (const char* what : {"summarise_", "magnitudes_", "histogram_"})
    for (int dtype = 0; dtype < dtypeCount; ++dtype)
      EXPECT_GT(cuda::gpu(0).kernel(what + std::string(shortName(static_cast<DType>(dtype)))).resident, 1);
}

}  // namespace
}  // namespace retrograd
