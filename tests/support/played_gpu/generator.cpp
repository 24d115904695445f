#include "tests/support/played_gpu/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/empty.h>
#include <c10/core/GeneratorImpl.h>

#include <cmath>
#include <cstring>
#include <random>

namespace retrograd::test {
namespace {

constexpr std::uint64_t defaultSeed = 67280421310721;  // LibTorch's
constexpr std::uint64_t drawsOfOp = 4;                 // numbers of one thread
constexpr std::int64_t mostThreads = 4096;             // of two processors

class PlayedGenerator final : public c10::GeneratorImpl {
 public:
  PlayedGenerator() : GeneratorImpl(c10::Device(c10::kCUDA, 0), c10::DispatchKeySet(c10::DispatchKey::CUDA)) {}
  void set_current_seed(std::uint64_t seed) override { seed_ = seed, offset_ = 0; }
  void set_offset(std::uint64_t offset) override { offset_ = offset; }
  std::uint64_t get_offset() const override { return offset_; }
  std::uint64_t current_seed() const override { return seed_; }
  std::uint64_t seed() override {
    set_current_seed(std::random_device()());
    return seed_;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.numel() == 16, "RNG state is wrong size");
    std::memcpy(&seed_, state.data(), 8);
    std::memcpy(&offset_, static_cast<const char*>(state.data()) + 8, 8);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto state = at::empty({16}, at::kByte);
    std::memcpy(state.mutable_data_ptr(), &seed_, 8);
    std::memcpy(static_cast<char*>(state.mutable_data_ptr()) + 8, &offset_, 8);
    return state.getIntrusivePtr();
  }

 private:
  PlayedGenerator* clone_impl() const override {
    auto* other = new PlayedGenerator;
    other->seed_ = seed_;
    other->offset_ = offset_;
    return other;
  }
  std::uint64_t seed_ = defaultSeed, offset_ = 0;
};

}  // namespace

at::Generator newPlayedGenerator() { return at::make_generator<PlayedGenerator>(); }

const at::Generator& playedGenerator() {
  static const auto* const one = new at::Generator(newPlayedGenerator());
  return *one;
}

PlayedDraw::PlayedDraw(at::Generator generator) {
  auto cpu = at::detail::getDefaultCPUGenerator();
  before_ = cpu.get_state();
  const auto seed = generator.current_seed(), offset = generator.get_offset();
  cpu.set_current_seed(seed * 6364136223846793005u + offset);
  generator.set_offset(offset + drawsOfOp);
}

PlayedDraw::~PlayedDraw() {
  auto cpu = at::detail::getDefaultCPUGenerator();
  cpu.set_state(before_);
}

bool drawUniform(const at::Tensor& tensor, double from, double to, at::Generator generator) {
  if (tensor.scalar_type() != at::kFloat || !tensor.is_contiguous() || tensor.numel() > mostThreads) return false;
  constexpr float unit = 2.3283064e-10f;  // 2^-32, of curand_uniform: numbers in (0, 1]
  const auto seed = generator.current_seed(), offset = generator.get_offset();
  auto* numbers = tensor.mutable_data_ptr<float>();
  const auto low = static_cast<float>(from), range = static_cast<float>(to) - low;
  for (std::int64_t thread = 0; thread < tensor.numel(); ++thread) {
    at::Philox4_32 engine(seed, static_cast<std::uint64_t>(thread), offset / drawsOfOp);
    const float drawn = std::fma(static_cast<float>(engine()), unit, unit / 2);
    const float number = drawn * range + low;
    numbers[thread] = number == static_cast<float>(to) ? low : number;
  }
  generator.set_offset(offset + drawsOfOp);
  return true;
}

}  // namespace retrograd::test
