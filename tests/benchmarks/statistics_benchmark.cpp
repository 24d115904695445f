// Statistics of a tensor's memory, next to a copy of the same memory in the same turn: "of copy" is to be 0.6 and more.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <random>

#include "core/statistics/element.h"
#include "core/statistics/tensor_pass.h"

namespace retrograd::benchmarks {
namespace {

constexpr std::size_t size = std::size_t{128} << 20;

/// Numbers of the usual sizes, no NaN or infinity: random bits, with the exponent of each in the middle.
std::vector<std::uint8_t> someNumbers(DType dtype) {
  std::vector<std::uint8_t> bytes(size);
  std::mt19937 random(3);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  const auto part = static_cast<std::size_t>(itemSize(dtype)) / (isComplex(dtype) ? 2 : 1);
  const bool exponents = isFloating(dtype) || isComplex(dtype);
  for (std::size_t i = part - 1; exponents && i < size; i += part)
    bytes[i] = static_cast<std::uint8_t>((bytes[i] & 0x83u) | 0x38u);
  return bytes;
}

void statistics(benchmark::State& state, DType dtype) {
  const auto from = someNumbers(dtype);
  std::vector<std::uint8_t> to(size);
  const Footprint numbers({dtype, from.data(), {static_cast<std::int64_t>(size) / itemSize(dtype)}, {1}});
  const auto inOrder = [](std::int64_t count, const std::function<void(std::int64_t)>& body) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  };
  const auto timed = [](auto&& body) {
    const auto start = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<double> pass, copy;
  for (auto _ : state) {
    copy.push_back(timed([&] { std::memcpy(to.data(), from.data(), size); }));
    pass.push_back(timed([&] { benchmark::DoNotOptimize(statisticsOf(numbers, inOrder)); }));
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  const auto median = [](std::vector<double>& times) {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  };
  const double passTime = median(pass), copyTime = median(copy);
  state.counters["GB/s"] = static_cast<double>(size) / passTime / 1e9;
  state.counters["copy GB/s"] = static_cast<double>(size) / copyTime / 1e9;
  state.counters["of copy"] = copyTime / passTime;
}

const bool registered = [] {
  for (int d = 0; d < dtypeCount; ++d)
    benchmark::RegisterBenchmark(("statistics/" + std::string(shortName(static_cast<DType>(d)))).c_str(), statistics,
                                 static_cast<DType>(d))
        ->Iterations(15)
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace retrograd::benchmarks
