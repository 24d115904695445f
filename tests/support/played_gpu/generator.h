#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace retrograd::test {

/// The generator of the played GPU, as ATen/cuda/CUDAGeneratorImpl.h: a seed, and an offset by which draws move on.
const at::Generator& playedGenerator();
at::Generator newPlayedGenerator();

/// While it lives, the CPU's default generator draws what follows from the seed and the offset of a played one, which
/// moves on.
class PlayedDraw {
 public:
  explicit PlayedDraw(at::Generator generator);
  ~PlayedDraw();
  PlayedDraw(const PlayedDraw&) = delete;
  PlayedDraw& operator=(const PlayedDraw&) = delete;

 private:
  at::Tensor before_;
};

/// Uniform numbers in [0, 1) as the kernel of a GPU draws them (ATen/native/cuda/DistributionTemplates.h): Philox 4x32
/// with ten rounds, a thread for each element, for as few elements as a block has threads.
std::vector<float> uniformOfGpu(std::uint64_t seed, std::uint64_t offset, std::size_t count);

}  // namespace retrograd::test
