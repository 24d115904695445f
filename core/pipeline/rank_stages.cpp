#include "core/pipeline/rank_stages.h"

#include <algorithm>
#include <cstring>

#include "core/debug/result_names.h"

namespace retrograd {
namespace {

std::uint64_t seedOf(const Analysis& whole, std::int32_t stage, std::int32_t microbatch) {
  return whole.seed + 1000003u * static_cast<std::uint64_t>(stage + 1) + static_cast<std::uint64_t>(microbatch);
}

TensorData rotated(const TensorData& tensor, std::int32_t by) {
  const auto dense = sentTensor(tensor);
  const auto count = dense.meta.elements();
  if (count < 2 || by % count == 0) return dense;
  const auto item = static_cast<std::size_t>(itemSize(dense.meta.dtype)), bytes = static_cast<std::size_t>(count) * item;
  const auto shift = static_cast<std::size_t>(by % count) * item;
  auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  std::memcpy(memory->data() + shift, dense.data, bytes - shift);
  std::memcpy(memory->data(), dense.data + (bytes - shift), shift);
  return {dense.meta, memory->data(), bytes, memory};
}

void addTo(TensorMap& sums, const std::string& name, const TensorData& term) {
  const auto [it, isNew] = sums.try_emplace(name, term);
  if (!isNew) it->second = addTensors(it->second, term);
}

}  // namespace

TensorMap microbatchInputs(const Analysis& whole, std::int32_t microbatch) {
  TensorMap inputs;
  for (const auto& [name, tensor] : whole.inputs) inputs.emplace(name, rotated(tensor, microbatch));
  return inputs;
}

StageValues RankStages::forward(std::int32_t s, std::int32_t microbatch, StageValues received) {
  const auto& stage = *pipeline_.stages.at(static_cast<std::size_t>(s));
  const auto& split = pipeline_.split.stages[static_cast<std::size_t>(s)];
  TensorMap inputs;
  for (std::size_t i = 0; i < split.inputs.size(); ++i) {
    const auto& name = stage.computation().inputs[split.held.size() + i].name;
    const bool isOwn = split.inputs[i].source < 0;  // an input of the model
    const auto& from = isOwn ? pipeline_.whole->inputs : received[split.inputs[i].source];
    const auto it = from.find(isOwn ? name : std::to_string(split.inputs[i].output));
    if (it != from.end()) inputs.insert_or_assign(name, isOwn ? rotated(it->second, microbatch) : it->second);
  }
  auto result = runStageForward(stage, inputs, seededGenerator(seedOf(*pipeline_.whole, s, microbatch)));
  StageValues sent;
  for (std::size_t k = 0; k < split.outputs.size(); ++k)
    for (auto destination : split.outputs[k].destinations)
      if (result.outputs.at(k)) sent[destination][std::to_string(k)] = sentTensor(*result.outputs[k]);
  running_[{s, microbatch}].forward = std::move(result);
  return sent;
}

/// What outside gives, then what later stages sent, the last of them first: the order in which the stages of one process add them up.
TensorMap RankStages::cotangentsOf(std::int32_t s, const StageValues& sent) const {
  const auto& whole = *pipeline_.whole;
  const auto& outputs = pipeline_.split.stages[static_cast<std::size_t>(s)].outputs;
  TensorMap found;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto name = std::to_string(k);
    for (auto result : outputs[k].results)
      if (const auto it = whole.cotangents.find(userOutputPosition(whole.computation(), result)); it != whole.cotangents.end()) addTo(found, name, it->second);
    TensorMap back;
    for (auto later = sent.rbegin(); later != sent.rend(); ++later)
      if (const auto it = later->second.find(name); it != later->second.end()) addTo(back, name, it->second);
    if (!back.empty()) addTo(found, name, back.begin()->second);
  }
  return found;
}

StageValues RankStages::handBack(std::int32_t s, const TensorMap& gradients) const {
  const auto& stage = pipeline_.stages[static_cast<std::size_t>(s)]->computation();
  const auto& split = pipeline_.split.stages[static_cast<std::size_t>(s)];
  StageValues back;
  for (std::size_t i = 0; i < split.inputs.size(); ++i) {
    const auto& from = split.inputs[i];
    const auto it = gradients.find("in." + stage.inputs[split.held.size() + i].name);
    if (from.source >= 0 && it != gradients.end()) back[from.source][std::to_string(from.output)] = sentTensor(it->second);
  }
  return back;
}

void RankStages::addParameters(const TensorMap& gradients) {
  for (const auto& [name, tensor] : gradients)
    if (name.starts_with("p.")) addTo(gradients_, "p." + firstName(pipeline_.whole->computation(), name.substr(2)), tensor);
}

StageValues RankStages::backward(std::int32_t s, std::int32_t microbatch, StageValues cotangents) {
  auto running = running_.extract({s, microbatch});
  const auto& forward = running.mapped().forward;
  const auto result = runStageBackward(*pipeline_.stages[static_cast<std::size_t>(s)], *forward.saved, cotangentsOf(s, cotangents), forward.generator);
  addParameters(result.gradients);
  return handBack(s, result.gradients);
}

StageValues RankStages::backwardInput(std::int32_t s, std::int32_t microbatch, StageValues cotangents) {
  auto& running = running_.at({s, microbatch});
  running.half = runStageInputBackward(*pipeline_.stages[static_cast<std::size_t>(s)], *running.forward.saved, cotangentsOf(s, cotangents), running.forward.generator);
  running.forward.saved.reset();
  return handBack(s, running.half.gradients);
}

void RankStages::backwardWeight(std::int32_t s, std::int32_t microbatch) {
  const auto running = running_.extract({s, microbatch});
  addParameters(runStageWeightBackward(*pipeline_.stages[static_cast<std::size_t>(s)], *running.mapped().half.rest));
}

TensorMap unsplitGradients(const Analysis& whole, std::int32_t microbatches, const Progress& progress) {
  TensorMap sums;
  for (std::int32_t m = 0; m < microbatches; ++m) {
    progress.check();
    const auto forward = runStageForward(whole, microbatchInputs(whole, m), seededGenerator(whole.seed));
    const auto backward = runStageBackward(whole, *forward.saved, whole.cotangents, forward.generator);
    for (const auto& [name, tensor] : backward.gradients)
      if (name.starts_with("p.")) addTo(sums, "p." + firstName(whole.computation(), name.substr(2)), tensor);
  }
  return sums;
}

std::vector<StageEdge> stageEdges(const PipelineSplit& split) {
  std::vector<StageEdge> edges;
  for (const auto& edge : split.edges) {
    const StageEdge one{edge.source, edge.destination};
    if (edge.source >= 0 && std::find(edges.begin(), edges.end(), one) == edges.end()) edges.push_back(one);
  }
  return edges;
}

std::map<std::string, TensorMeta> gradientsToSum(const Pipeline& pipeline) {
  std::map<std::string, TensorMeta> found;
  const auto& weights = pipeline.whole->file.weights;
  for (const auto& shared : pipeline.split.shared) {
    if (shared.use != MultiUse::replicate || shared.names.empty()) continue;
    const auto name = firstName(pipeline.whole->computation(), shared.names.front());
    if (const auto it = weights.find(name); it != weights.end()) {
      auto meta = it->second.meta;
      meta.strides = contiguousStrides(meta.sizes);
      meta.offset = 0;
      found.emplace("p." + name, meta);
    }
  }
  return found;
}

bool drawsAnything(const Analysis& whole) {
  return std::any_of(whole.joint.ops.begin(), whole.joint.ops.end(),
                     [&](BoundSymbolId op) { return (whole.document->boundSymbol(op).effects & effect::random) != 0; });
}

}  // namespace retrograd
