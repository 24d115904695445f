// How near the kernels come to the bandwidth of a copy on this GPU: prints {"figures": {"summarise_f32": 0.98, ...}}. A
// copy reads and writes each byte, a kernel reads it; 1 is half a copy's time. Needs a GPU, neither LibTorch nor Google
// Benchmark.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>

#include "core/base/error.h"
#include "core/torch/execution/cuda/summaries.h"
#include "core/torch/execution/cuda/summary.h"

namespace retrograd::cuda {
namespace {

constexpr std::size_t bytes = std::size_t{1} << 30, part = std::size_t{64} << 20;
constexpr int repeats = 8;

/// Seconds of one call, by events; the first one is not counted.
double secondsOf(Gpu& gpu, const std::function<void()>& work) {
  auto *begin = gpu.createEvent(), *end = gpu.createEvent();
  work();
  gpu.record(begin);
  for (int i = 0; i < repeats; ++i) work();
  gpu.record(end);
  gpu.wait(end);
  return gpu.secondsBetween(begin, end) / repeats;
}

/// Normal numbers, as weights and activations are.
template <class Bits, class Convert>
void fill(Gpu& gpu, const Memory& memory, Convert&& convert) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<Bits> numbers(part / sizeof(Bits));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = i < (1 << 20) ? convert(normal(generator)) : numbers[i - (1 << 20)];
  for (std::size_t at = 0; at < bytes; at += part) gpu.copyToDevice(memory, numbers.data(), part, at);
}

void measure(Gpu& gpu, const Memory& memory, DType dtype, double copy, std::string& figures) {
  const auto name = std::string(shortName(dtype));
  Tensor tensor{};
  tensor.data = reinterpret_cast<const void*>(memory.address());
  tensor.elements = static_cast<std::int64_t>(bytes) / itemSize(dtype);
  tensor.dtype = static_cast<std::int32_t>(dtype);
  tensor.contiguous = 1;
  Summaries summaries(gpu, repeats + 1);
  const auto add = [&](const std::string& kernel, double seconds) {
    figures += fmt::format("{}\"{}\": {:.3f}", figures.empty() ? "" : ", ", kernel, copy / 2 / seconds);
  };
  add("summarise_" + name, secondsOf(gpu, [&] {
        summaries.add(tensor);
        summaries.launch();
      }));
  const auto kernel = gpu.kernel("magnitudes_" + name);
  Layout layout{};
  withElement(dtype, [&](auto element) { layout = layoutOf<decltype(element)>(tensor, kernel.resident); });
  const auto counts = gpu.allocate(magnitudeCells * sizeof(std::int64_t));
  gpu.clear(counts, magnitudeCells * sizeof(std::int64_t));
  auto address = counts.address();
  void* parameters[]{&tensor, &layout, &address};
  add("magnitudes_" + name, secondsOf(gpu, [&] { gpu.launch(kernel, layout.blocks, 1, parameters); }));
}

void run() {
  auto& gpu = cuda::gpu(0);
  if (!gpu.withoutKernels().empty()) throw Error(ErrorCode::badUse, gpu.withoutKernels());
  const auto from = gpu.allocate(bytes), to = gpu.allocate(bytes);
  const double copy = secondsOf(gpu, [&] {
    gpu.driver().check(gpu.driver().copyOnDevice(to.address(), from.address(), bytes, nullptr), "a copy");
  });
  std::string figures;
  fill<float>(gpu, from, [](float x) { return x; });
  measure(gpu, from, DType::f32, copy, figures);
  fill<float>(gpu, from, [](float x) { return x > 0 ? x : 0; });
  std::string relu;
  measure(gpu, from, DType::f32, copy, relu);
  fill<std::uint16_t>(
      gpu, from, [](float x) { return static_cast<std::uint16_t>(numbers::reinterpretBits<std::uint32_t>(x) >> 16); });
  measure(gpu, from, DType::bf16, copy, figures);
  relu.replace(relu.find("_f32"), 4, "_f32, half of it zeros");
  figures += ", " + relu.substr(0, relu.find(", \"magnitudes"));
  fmt::print("{{\"figures\": {{{}}}}}\n", figures);
}

}  // namespace
}  // namespace retrograd::cuda

int main() {
  try {
    retrograd::cuda::run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpu_benchmarks: %s\n", e.what());
    return 2;
  }
}
