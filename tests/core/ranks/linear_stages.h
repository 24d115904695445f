#pragma once
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/ranks/stage_runner.h"
#include "core/schedule/schedule.h"

namespace retrograd::test {

using Numbers = std::vector<double>;

inline TensorData tensorOf(Numbers numbers, Device where = {}) {
  auto memory = std::make_shared<Numbers>(std::move(numbers));
  TensorData data;
  data.meta.dtype = DType::f64;
  data.meta.sizes = {static_cast<std::int64_t>(memory->size())};
  data.meta.strides = {1};
  data.data = reinterpret_cast<const std::byte*>(memory->data());
  data.bytes = memory->size() * sizeof(double);
  data.owner = memory;
  data.memory = where;
  return data;
}

inline Numbers numbersOf(const TensorData& data) {
  Numbers numbers(static_cast<std::size_t>(data.meta.elements()));
  std::memcpy(numbers.data(), data.data, numbers.size() * sizeof(double));
  return numbers;
}

/// Stage s multiplies the sum of what it gets by s + 2; the first one gets microbatch + 1, microbatch + 2, ...; the
/// loss is the sum of all that nobody reads. Whole numbers throughout, so that sums are exact in any order.
/// Microbatches differ in size.
class LinearStages final : public StageRunner {
 public:
  /// `memory`: what the tensors that it gives say of theirs.
  explicit LinearStages(const Schedule& schedule, Device memory = {}) : edges_(schedule.allEdges()), memory_(memory) {}

  StageValues forward(std::int32_t stage, std::int32_t microbatch, StageValues inputs) override {
    if (onForward) onForward(stage, microbatch);
    Numbers sum = inputs.empty() ? first(microbatch) : added(inputs, "value");
    Numbers out = sum;
    for (auto& number : out) number *= stage + 2;
    saved_[{stage, microbatch}] = std::move(sum);
    StageValues outputs;
    for (const auto& edge : edges_)
      if (edge.source == stage) outputs[edge.consumer] = {{"value", tensorOf(out, memory_)}};
    return outputs;
  }
  StageValues backward(std::int32_t stage, std::int32_t microbatch, StageValues cotangents) override {
    auto result = backwardInput(stage, microbatch, std::move(cotangents));
    backwardWeight(stage, microbatch);
    return result;
  }
  StageValues backwardInput(std::int32_t stage, std::int32_t microbatch, StageValues cotangents) override {
    const auto& saved = saved_.at({stage, microbatch});
    Numbers sum = cotangents.empty() ? Numbers(saved.size(), 1) : added(cotangents, "gradient");
    Numbers out = sum;
    for (auto& number : out) number *= stage + 2;
    pending_[{stage, microbatch}] = std::move(sum);
    StageValues outputs;
    for (const auto& edge : edges_)
      if (edge.consumer == stage) outputs[edge.source] = {{"gradient", tensorOf(out, memory_)}};
    return outputs;
  }
  void backwardWeight(std::int32_t stage, std::int32_t microbatch) override {
    const auto& saved = saved_.at({stage, microbatch});
    const auto& cotangent = pending_.at({stage, microbatch});
    for (std::size_t i = 0; i < saved.size(); ++i) gradients[stage] += saved[i] * cotangent[i];
    saved_.erase({stage, microbatch});
    pending_.erase({stage, microbatch});
  }
  bool idle() const { return saved_.empty() && pending_.empty(); }

  std::map<std::int32_t, double> gradients;                   ///< by stage
  std::function<void(std::int32_t, std::int32_t)> onForward;  ///< to make trouble

 private:
  static Numbers first(std::int32_t microbatch) {
    Numbers numbers(static_cast<std::size_t>(3 + microbatch % 2));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = microbatch + 1 + static_cast<double>(i);
    return numbers;
  }
  static Numbers added(const StageValues& values, const char* name) {
    Numbers sum;
    for (const auto& [stage, tensors] : values) {
      const auto numbers = numbersOf(tensors.at(name));
      if (sum.empty()) sum.resize(numbers.size());
      if (sum.size() != numbers.size()) throw std::runtime_error("values of different microbatches have met");
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += numbers[i];
    }
    return sum;
  }

  std::vector<StageEdge> edges_;
  Device memory_;
  std::map<std::pair<std::int32_t, std::int32_t>, Numbers> saved_, pending_;
};

/// Gradients of all stages, computed stage by stage in one place.
inline std::map<std::int32_t, double> expectedGradients(const Schedule& schedule) {
  LinearStages stages(schedule);
  const auto edges = schedule.allEdges();
  for (std::int32_t microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
    std::map<std::int32_t, StageValues> forwards, backwards;
    for (std::int32_t stage = 0; stage < schedule.stages; ++stage)
      for (auto& [to, tensors] : stages.forward(stage, microbatch, std::move(forwards[stage])))
        forwards[to][stage] = tensors;
    for (auto stage = schedule.stages; stage-- > 0;)
      for (auto& [to, tensors] : stages.backward(stage, microbatch, std::move(backwards[stage])))
        backwards[to][stage] = tensors;
  }
  return stages.gradients;
}

}  // namespace retrograd::test
