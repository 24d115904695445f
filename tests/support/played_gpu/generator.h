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

/// Fills a float32 tensor on the CPU as the kernel of a GPU draws uniform numbers for `generator`, which moves on:
/// Philox 4x32 with ten rounds, a thread for each element (ATen/native/cuda/DistributionTemplates.h). False for a
/// tensor of another kind, or of more elements than the GPU's threads that run at once.
bool drawUniform(const at::Tensor& tensor, double from, double to, at::Generator generator);

}  // namespace retrograd::test
