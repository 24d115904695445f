// libretrograd_cuda.so: that it loads without a driver, and, where there is a GPU, that its kernels give what their
// twin on the CPU gives.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/torch/execution/cuda/twin.h"
#include "core/torch/execution/cuda_library.h"
#include "core/torch/execution/device.h"

namespace retrograd {
namespace {

#define NEED_LIBRARY()                                                           \
  if (!RETROGRAD_CUDA) GTEST_SKIP() << "this build has no GPU kernels: no nvcc"; \
  ASSERT_NE(cudaLibrary(), nullptr)

#define NEED_GPU() \
  NEED_LIBRARY();  \
  if (int count = 0; cudaLibrary()->deviceCount(&count) != 0 || count == 0) GTEST_SKIP() << "no GPU here"

TEST(CudaLibrary, loadsWithoutADriver) {
  NEED_LIBRARY();
  EXPECT_EQ(cudaLibrary()->interface(), cuda::interfaceVersion);
  int count = -1;
  const int code = cudaLibrary()->deviceCount(&count);
  if (code != 0) {
    EXPECT_EQ(count, 0);
    EXPECT_STRNE(cudaLibrary()->error(code), cudaLibrary()->error(0));
  }
}

TEST(CudaLibrary, refusesWhatItCannotRun) {
  NEED_LIBRARY();
  float number = 1;
  cuda::Tensor tensor{};
  tensor.data = &number;
  tensor.elements = 1;
  tensor.dtype = 77;
  tensor.contiguous = 1;
  cuda::Summary summary;
  EXPECT_NE(cudaLibrary()->summarise(&tensor, nullptr, &summary), 0);
  std::int64_t counts[1];
  EXPECT_NE(cudaLibrary()->histogram(&tensor, 0, 1, 1 << 20, nullptr, counts), 0);
}

TEST(CudaLibrary, rangesAreHarmlessWhereNoToolListens) {
  {
    const ProfilerRange range("torch.ops.aten.mm.default");
  }
  {
    const ProfilerRange none("");
  }
}

/// Bytes on the GPU.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<unsigned char>& bytes) {
    EXPECT_EQ(cudaLibrary()->allocate(std::max<std::size_t>(bytes.size(), 1), &memory_), 0);
    EXPECT_EQ(cudaLibrary()->upload(memory_, bytes.data(), bytes.size()), 0);
  }
  ~OnDevice() { cudaLibrary()->free(memory_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  char* memory() const { return static_cast<char*>(memory_); }

 private:
  void* memory_ = nullptr;
};

std::vector<unsigned char> randomBytes(std::size_t count) {
  std::mt19937 generator(11);
  std::vector<unsigned char> bytes(count);
  for (auto& b : bytes) b = static_cast<unsigned char>(generator());
  return bytes;
}

void expectSame(const cuda::Summary& a, const cuda::Summary& b) {
  EXPECT_EQ(a.finite, b.finite);
  for (int i = 0; i < cuda::magnitudeCells; ++i) EXPECT_EQ(a.magnitudes[i], b.magnitudes[i]) << "cell " << i;
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

TEST(Gpu, kernelsGiveWhatTheirTwinGives) {
  NEED_GPU();
  for (int dtype = 0; dtype < dtypeCount; ++dtype)
    for (const std::int64_t elements : {0, 1, 255, 100'003}) {
      SCOPED_TRACE(std::string(shortName(static_cast<DType>(dtype))) + " x " + std::to_string(elements));
      const auto item = itemSize(static_cast<DType>(dtype));
      const auto bytes = randomBytes(static_cast<std::size_t>(elements * item));
      const OnDevice device(bytes);
      cuda::Tensor tensor{};
      tensor.elements = elements;
      tensor.dtype = dtype;
      tensor.contiguous = 1;
      cuda::Summary ours, twins;
      tensor.data = device.memory();
      ASSERT_EQ(cudaLibrary()->summarise(&tensor, nullptr, &ours), 0);
      tensor.data = bytes.data();
      ASSERT_TRUE(cuda::twin::summarise(tensor, twins));
      expectSame(ours, twins);
      if (ours.finite == 0) continue;
      const double scale = cuda::linearScale(twins.least, twins.greatest, 20);
      std::vector<std::int64_t> a(20), b(20);
      ASSERT_TRUE(cuda::twin::histogram(tensor, twins.least, scale, b));
      tensor.data = device.memory();
      ASSERT_EQ(cudaLibrary()->histogram(&tensor, twins.least, scale, 20, nullptr, a.data()), 0);
      EXPECT_EQ(a, b);
    }
}

TEST(Gpu, stridedAndShiftedTensors) {
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
      cuda::Summary ours, twins;
      tensor.data = device.memory() + shift;
      ASSERT_EQ(cudaLibrary()->summarise(&tensor, nullptr, &ours), 0);
      tensor.data = bytes.data() + shift;
      ASSERT_TRUE(cuda::twin::summarise(tensor, twins));
      expectSame(ours, twins);
    }
}

TEST(Gpu, theSameTensorGivesTheSameBits) {
  NEED_GPU();
  const auto bytes = randomBytes(8 << 20);
  const OnDevice device(bytes);
  cuda::Tensor tensor{device.memory(), (8 << 20) / 4, {}, {}, 0, static_cast<std::int32_t>(DType::f32), 1};
  cuda::Summary first, again;
  ASSERT_EQ(cudaLibrary()->summarise(&tensor, nullptr, &first), 0);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(cudaLibrary()->summarise(&tensor, nullptr, &again), 0);
    EXPECT_EQ(first.mean, again.mean);
    EXPECT_EQ(first.squares, again.squares);
    EXPECT_EQ(first.norm, again.norm);
  }
}

/// Statistics read a tensor once; a copy reads and writes it. So at the copy's bandwidth they would take half its time.
TEST(Gpu, statisticsKeepUpWithMemory) {
  NEED_GPU();
  const std::size_t bytes = std::size_t{1} << 30;
  const OnDevice from(std::vector<unsigned char>(bytes, 63)), to(std::vector<unsigned char>(bytes, 0));
  double copy = 0;
  ASSERT_EQ(cudaLibrary()->timeCopy(to.memory(), from.memory(), bytes, 10, &copy), 0);
  for (const auto dtype : {DType::f32, DType::bf16}) {
    cuda::Tensor tensor{from.memory(),
                        static_cast<std::int64_t>(bytes) / itemSize(dtype),
                        {},
                        {},
                        0,
                        static_cast<std::int32_t>(dtype),
                        1};
    double statistics = 0;
    ASSERT_EQ(cudaLibrary()->timeSummary(&tensor, 10, &statistics), 0);
    const double share = copy / 2 / statistics;
    RecordProperty("share of the copy's bandwidth, " + std::string(shortName(dtype)), std::to_string(share));
    EXPECT_GE(share, 0.8) << shortName(dtype) << ": " << 10 * static_cast<double>(bytes) / statistics * 1e-9 << " GB/s";
  }
}

}  // namespace
}  // namespace retrograd
