#include "core/torch/tracing/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <cstring>
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/interceptor.h"
#include "core/torch/tracing/recorded_generator.h"

namespace retrograd {

namespace {

at::Generator defaultGenerator(c10::Device device) {
  return device.is_cpu() ? at::detail::getDefaultCPUGenerator() : at::globalContext().defaultGenerator(device);
}

struct States {
  std::mutex mutex;
  std::map<std::uint64_t, std::string> bytes;  ///< by seed
};

States& states() {
  static auto* const all = new States;
  return *all;
}

at::Tensor tensorOf(const std::string& bytes) {
  auto tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

/// LibTorch refuses bytes that are no state of its generator.
void requireState(const std::string& bytes) {
  BelowInterception below;
  try {
    at::detail::createCPUGenerator(0).set_state(tensorOf(bytes));
  } catch (const c10::Error& e) {
    throw Error(ErrorCode::badInput, std::string("is not a state of a random generator: ") + e.what_without_backtrace(),
                "generator.cpu");
  }
}

std::uint64_t remember(std::string bytes) {
  requireState(bytes);
  std::uint64_t seed = 14695981039346656037u;  // FNV-1a
  for (const char c : bytes) seed = (seed ^ static_cast<std::uint8_t>(c)) * 1099511628211u;
  auto& all = states();
  std::lock_guard lock(all.mutex);
  for (;; ++seed) {
    const auto [at, isNew] = all.bytes.emplace(seed, bytes);
    if (isNew || at->second == bytes) return seed;
  }
}

constexpr std::string_view digits = "0123456789abcdef";

/// The state behind a seed that seedOfState made; an undefined tensor for any other seed.
at::Tensor recordedState(std::uint64_t seed) {
  auto& all = states();
  std::lock_guard lock(all.mutex);
  const auto found = all.bytes.find(seed);
  return found == all.bytes.end() ? at::Tensor() : tensorOf(found->second);
}

}  // namespace

std::uint64_t seedOfState(const TensorData& state) {
  if (state.meta.dtype != DType::u8 || !state.data)
    throw Error(ErrorCode::badInput, "a generator's state is a tensor of bytes (uint8)", "generator.cpu");
  return remember(std::string(reinterpret_cast<const char*>(state.data), state.bytes));
}

std::uint64_t seedOfState(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto high = digits.find(text[i]), low = digits.find(text[i + 1]);
    if (high == digits.npos || low == digits.npos)
      throw Error(ErrorCode::badInput, "is not written in hexadecimal digits", "generator.cpu");
    bytes += static_cast<char>(high * 16 + low);
  }
  return remember(std::move(bytes));
}

std::optional<std::string> stateAsText(std::uint64_t seed) {
  auto& all = states();
  std::lock_guard lock(all.mutex);
  const auto found = all.bytes.find(seed);
  if (found == all.bytes.end()) return std::nullopt;
  std::string text;
  for (const char c : found->second) {
    text += digits[static_cast<std::uint8_t>(c) >> 4];
    text += digits[static_cast<std::uint8_t>(c) & 15];
  }
  return text;
}

at::Tensor generatorState(c10::Device device) {
  BelowInterception below;
  auto generator = defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void setGeneratorState(const at::Tensor& state, c10::Device device) {
  BelowInterception below;
  auto generator = defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

at::Tensor seededState(std::uint64_t seed, c10::Device device) {
  BelowInterception below;
  if (const auto recorded = device.is_cpu() ? recordedState(seed) : at::Tensor(); recorded.defined()) return recorded;
  if (device.is_cpu()) return at::detail::createCPUGenerator(seed).get_state();
  auto generator = defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator.get_state();
}

at::Tensor drawTensor(const TensorMeta& meta, at::Generator& generator) {
  const auto type = toScalarType(meta.dtype);
  if (isDifferentiable(meta.dtype)) {
    const auto wide = isComplex(meta.dtype) ? at::kComplexDouble : at::kDouble;
    return at::randn(meta.sizes, generator, at::TensorOptions().dtype(wide)).to(type);
  }
  return at::randint(0, 2, meta.sizes, generator, at::TensorOptions().dtype(at::kLong)).to(type);
}

}  // namespace retrograd
