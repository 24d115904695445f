#include "core/torch/tracing/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/interceptor.h"
#include "core/torch/tracing/recorded_generator.h"

namespace retrograd {

namespace {

at::Generator defaultGenerator(c10::Device device) {
  return device.is_cpu() ? at::detail::getDefaultCPUGenerator() : at::globalContext().defaultGenerator(device);
}

/// The bytes of generators' states: the CPU's, and those of GPUs by number.
struct StateBytes {
  std::string cpu;
  std::map<std::int32_t, std::string> gpus;
  bool operator==(const StateBytes&) const = default;
};

struct States {
  std::mutex mutex;
  std::map<std::uint64_t, StateBytes> bytes;  ///< by seed
};

States& states() {
  static auto* const all = new States;
  return *all;
}

at::Tensor tensorOf(const std::string& bytes) {
  auto tensor = at::empty({std::ssize(bytes)}, at::kByte);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

/// LibTorch refuses bytes that are not a state of its generator on the CPU. That of a GPU is a seed and an offset, of
/// eight bytes each (ATen/cuda/CUDAGeneratorImpl), and there may be no GPU to ask.
void requireStates(const StateBytes& bytes) {
  constexpr std::size_t bytesOfGpu = 16;
  BelowInterception below;
  try {
    at::detail::createCPUGenerator(0).set_state(tensorOf(bytes.cpu));
  } catch (const c10::Error& e) {
    throw Error(ErrorCode::badInput, std::string("is not a state of a random generator: ") + e.what_without_backtrace(),
                "generator.cpu");
  }
  for (const auto& [index, state] : bytes.gpus)
    if (state.size() != bytesOfGpu)
      throw Error(ErrorCode::badInput,
                  "is not a state of a random generator of a GPU: it has " + std::to_string(state.size()) +
                      " bytes, a seed and an offset have " + std::to_string(bytesOfGpu),
                  "generator.cuda." + std::to_string(index));
}

std::uint64_t remember(const StateBytes& bytes) {
  requireStates(bytes);
  std::uint64_t seed = 14695981039346656037u;  // FNV-1a
  const auto add = [&seed](const std::string& state) {
    for (const char c : state) seed = (seed ^ static_cast<std::uint8_t>(c)) * 1099511628211u;
  };
  add(bytes.cpu);
  for (const auto& [index, state] : bytes.gpus) add(std::to_string(index) + state);
  auto& all = states();
  std::lock_guard lock(all.mutex);
  for (;; ++seed) {
    const auto [at, isNew] = all.bytes.emplace(seed, bytes);
    if (isNew || at->second == bytes) return seed;
  }
}

constexpr std::string_view digits = "0123456789abcdef";
constexpr std::string_view gpuMark = " cuda.";  // before a GPU's number and its state

std::string inHex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    text += digits[static_cast<std::uint8_t>(c) >> 4];
    text += digits[static_cast<std::uint8_t>(c) & 15];
  }
  return text;
}

std::string fromHex(std::string_view text, const std::string& place) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto high = digits.find(text[i]), low = digits.find(text[i + 1]);
    if (high == digits.npos || low == digits.npos)
      throw Error(ErrorCode::badInput, "is not written in hexadecimal digits", place);
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::string bytesOf(const TensorData& state, const std::string& place) {
  if (state.meta.dtype != DType::u8 || !state.data)
    throw Error(ErrorCode::badInput, "a generator's state is a tensor of bytes (uint8)", place);
  return {reinterpret_cast<const char*>(state.data), state.bytes};
}

/// The state behind a seed that seedOfStates made; an undefined tensor for any other seed. Of a GPU that has none, that
/// of the first: the step ran on another GPU of its machine.
at::Tensor recordedState(std::uint64_t seed, c10::Device device) {
  auto& all = states();
  std::lock_guard lock(all.mutex);
  const auto found = all.bytes.find(seed);
  if (found == all.bytes.end()) return {};
  if (device.is_cpu()) return tensorOf(found->second.cpu);
  const auto& gpus = found->second.gpus;
  if (gpus.empty()) return {};
  const auto own = gpus.find(device.index());
  return tensorOf(own == gpus.end() ? gpus.begin()->second : own->second);
}

}  // namespace

std::uint64_t seedOfStates(const GeneratorStates& states) {
  if (!states.cpu) throw Error(ErrorCode::badInput, "is missing", "generator.cpu");
  StateBytes bytes{bytesOf(*states.cpu, "generator.cpu"), {}};
  for (const auto& [index, state] : states.gpus)
    bytes.gpus.emplace(index, bytesOf(state, "generator.cuda." + std::to_string(index)));
  return remember(bytes);
}

std::uint64_t seedOfStates(const std::string& text) {
  std::string_view left = text;
  const auto upToMark = [&left] {
    const auto end = std::min(left.find(gpuMark), left.size());
    const auto part = left.substr(0, end);
    left.remove_prefix(std::min(end + gpuMark.size(), left.size()));
    return part;
  };
  StateBytes bytes{fromHex(upToMark(), "generator.cpu"), {}};
  while (!left.empty()) {
    const auto part = upToMark();
    const auto equals = part.find('=');
    const auto index = numberIn<std::int32_t>(part.substr(0, equals));
    if (!index || equals == part.npos)
      throw Error(ErrorCode::badInput, "is not the number of a GPU and its state", "generator.cuda");
    bytes.gpus.emplace(*index, fromHex(part.substr(equals + 1), "generator.cuda." + std::to_string(*index)));
  }
  return remember(bytes);
}

std::optional<std::string> statesAsText(std::uint64_t seed) {
  auto& all = states();
  std::lock_guard lock(all.mutex);
  const auto found = all.bytes.find(seed);
  if (found == all.bytes.end()) return std::nullopt;
  auto text = inHex(found->second.cpu);
  for (const auto& [index, state] : found->second.gpus)
    text += std::string(gpuMark) + std::to_string(index) + '=' + inHex(state);
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
  if (const auto recorded = recordedState(seed, device); recorded.defined()) return recorded;
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
