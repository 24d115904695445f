#include "core/torch/stages/rank_stages.h"

#include <algorithm>
#include <utility>

#include "core/cut/stage_facts.h"
#include "core/derivation/result_names.h"

namespace retrograd {
namespace {

constexpr const char* generatorName = "generator";

/// Microbatches of one seed draw differently, and the first as a run of the model does.
std::uint64_t seedOf(const Microbatch& microbatch, std::int32_t number) {
  return microbatch.pipeline->whole->request.seed + static_cast<std::uint64_t>(number);
}

}  // namespace

RankStages::RankStages(std::vector<Microbatch> microbatches, bool keepOutputs, std::optional<Device> linked)
    : microbatches_(std::move(microbatches)),
      keepOutputs_(keepOutputs),
      draws_(drawsAnything(*microbatches_.at(0).pipeline->whole)),
      linked_(linked) {}

TensorData RankStages::leaving(const TensorData& tensor) const {
  return sentTensor(linked_ && tensor.memory == *linked_ ? tensor : hostTensor(tensor));
}

StageValues RankStages::forward(std::int32_t s, std::int32_t m, StageValues received) {
  const auto& microbatch = at(m);
  const auto& shared = microbatch.pipeline->stages.at(s);
  const auto& stage = *shared;
  const auto& split = this->split().stages[s];
  TensorMap inputs;
  for (std::size_t i = 0; i < split.inputs.size(); ++i) {
    const auto& name = stage.computation().inputs[split.held.size() + i].name;
    const bool isOwn = split.inputs[i].source < 0;  // an input of the model
    const auto& from = isOwn ? microbatch.inputs : received[split.inputs[i].source];
    const auto it = from.find(isOwn ? name : std::to_string(split.inputs[i].output));
    if (it != from.end()) inputs.insert_or_assign(name, it->second);
  }
  auto result = runStageForward(
      stage, inputs, draws_ && s > 0 ? received.at(s - 1).at(generatorName) : seededGenerator(seedOf(microbatch, m)),
      weightsOf(shared), results(), buffers_[s]);
  keepBuffers(buffers_[s], result);
  StageValues sent;
  for (std::size_t k = 0; k < split.outputs.size(); ++k) {
    if (!result.outputs.at(k)) continue;
    for (auto destination : split.outputs[k].destinations)
      sent[destination][std::to_string(k)] = leaving(*result.outputs[k]);
    if (!keepOutputs_ && !result.outputs[k]->meta.sizes.empty()) continue;
    for (auto output : split.outputs[k].results)
      outputs_[userOutputPosition(microbatch.pipeline->whole->computation(), output)][m] =
          hostTensor(*result.outputs[k]);
  }
  if (draws_ && s + 1 < std::ssize(this->split().stages)) sent[s + 1][generatorName] = result.generator;
  result.outputs.clear();  // whoever reads them has them
  running_[{s, m}].forward = std::move(result);
  return sent;
}

TensorMap RankStages::buffers() const {
  TensorMap all;
  for (const auto& [stage, buffers] : buffers_) all.insert(buffers.begin(), buffers.end());
  return all;
}

const std::shared_ptr<const StageTensors>& RankStages::weightsOf(const std::shared_ptr<const Analysis>& stage) {
  auto& weights = weights_[stage];
  if (!weights) weights = placeWeights(*stage);
  return weights;
}

/// What outside gives, then what later stages sent, the last of them first: the order in which the stages of one
/// process add them up.
TensorMap RankStages::cotangentsOf(std::int32_t s, std::int32_t m, const StageValues& sent) const {
  const auto& given = at(m).cotangents;
  const auto& outputs = split().stages[s].outputs;
  TensorMap found;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto name = std::to_string(k);
    for (auto result : outputs[k].results)
      if (const auto it = given.find(userOutputPosition(at(m).pipeline->whole->computation(), result));
          it != given.end())
        addTo(found, name, it->second);
    TensorMap back;
    for (auto later = sent.rbegin(); later != sent.rend(); ++later)
      if (const auto it = later->second.find(name); it != later->second.end()) addTo(back, name, it->second);
    if (!back.empty()) addTo(found, name, back.begin()->second);
  }
  return found;
}

/// A backward draws where the one of the stage behind it stopped.
TensorData RankStages::generatorOf(std::int32_t s, const Running& running, const StageValues& cotangents) const {
  if (!draws_ || s + 1 == std::ssize(split().stages)) return running.forward.generator;
  return cotangents.at(s + 1).at(generatorName);
}

StageValues RankStages::handBack(std::int32_t s, std::int32_t m, const TensorMap& gradients,
                                 const TensorData& generator) const {
  const auto& stage = at(m).pipeline->stages[s]->computation();
  const auto& split = this->split().stages[s];
  StageValues back;
  for (std::size_t i = 0; i < split.inputs.size(); ++i) {
    const auto& from = split.inputs[i];
    const auto it = gradients.find("in." + stage.inputs[split.held.size() + i].name);
    if (from.source >= 0 && it != gradients.end()) back[from.source][std::to_string(from.output)] = leaving(it->second);
  }
  if (draws_ && s > 0) back[s - 1][generatorName] = generator;
  return back;
}

void RankStages::addParameters(std::int32_t m, const TensorMap& gradients) {
  for (const auto& [name, tensor] : gradients)
    if (name.starts_with("p."))
      addTo(gradients_, "p." + firstName(at(m).pipeline->whole->computation(), name.substr(2)), tensor);
}

StageValues RankStages::backward(std::int32_t s, std::int32_t m, StageValues cotangents) {
  const auto running = running_.extract({s, m});
  const auto& forward = running.mapped().forward;
  const auto& stage = *at(m).pipeline->stages[s];
  const auto result = runStageBackward(stage, *forward.saved, cotangentsOf(s, m, cotangents),
                                       generatorOf(s, running.mapped(), cotangents), results());
  addParameters(m, result.gradients);
  return handBack(s, m, result.gradients, result.generator);
}

StageValues RankStages::backwardInput(std::int32_t s, std::int32_t m, StageValues cotangents) {
  auto& running = running_.at({s, m});
  const auto& stage = *at(m).pipeline->stages[s];
  running.half = runStageInputBackward(stage, *running.forward.saved, cotangentsOf(s, m, cotangents),
                                       generatorOf(s, running, cotangents), results());
  running.forward.saved.reset();
  return handBack(s, m, running.half.gradients, running.half.generator);
}

void RankStages::backwardWeight(std::int32_t s, std::int32_t m) {
  const auto running = running_.extract({s, m});
  addParameters(m, runStageWeightBackward(*at(m).pipeline->stages[s], *running.mapped().half.rest, results()));
}

UnsplitRun runUnsplit(const std::vector<Microbatch>& microbatches, const Progress& progress) {
  UnsplitRun run;
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    progress.check();
    const auto& whole = *microbatches[m].pipeline->whole;
    auto forward = runStageForward(whole, microbatches[m].inputs,
                                   seededGenerator(seedOf(microbatches[m], static_cast<std::int32_t>(m))), {},
                                   Results::onHost, run.buffers);
    keepBuffers(run.buffers, forward);
    const auto backward = runStageBackward(whole, *forward.saved, microbatches[m].cotangents, forward.generator);
    for (const auto& [name, tensor] : backward.gradients)
      if (name.starts_with("p.")) addTo(run.gradients, "p." + firstName(whole.computation(), name.substr(2)), tensor);
    run.outputs.push_back(std::move(forward.outputs));
  }
  return run;
}

std::set<std::string> gradientsOfStages(const Pipeline& pipeline, const std::set<std::int32_t>& stages) {
  std::set<std::string> names;
  const auto& computation = pipeline.whole->computation();
  for (auto s : stages)
    for (auto i : pipeline.split.stages.at(s).held)
      if (computation.inputs[i].kind == InputKind::parameter)
        names.insert("p." + firstName(computation, computation.inputs[i].target));
  return names;
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

}  // namespace retrograd
