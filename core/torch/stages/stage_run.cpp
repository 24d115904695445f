#include "core/torch/stages/stage_run.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <cstring>

#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/analysis/results.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/placement.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {

struct StageSaved {
  std::vector<std::pair<ValueId, c10::IValue>> values;
  Evaluator draws;  // holds what replays of draws start from
};

struct StageTensors {
  std::vector<std::pair<ValueId, c10::IValue>> values;
};

namespace {

/// What draws go on from. Packed: the CPU's state, the seed that a GPU's starts from, and the GPU's state once it has
/// drawn.
struct Draws {
  std::uint64_t seed = 0;
  Evaluator::Generators states;
};

TensorData packed(const Draws& draws) {
  auto seed = at::empty({static_cast<std::int64_t>(sizeof draws.seed)}, at::kByte);
  std::memcpy(seed.data_ptr(), &draws.seed, sizeof draws.seed);
  std::vector<at::Tensor> parts{draws.states.cpu, seed};
  if (draws.states.gpu.defined()) parts.push_back(draws.states.gpu);
  return keepTensor(at::cat(parts));
}

Draws unpacked(const TensorData& generator) {
  const auto bytes = borrowTensor(generator);
  const auto cpu = seededState(0).numel(), seedBytes = static_cast<std::int64_t>(sizeof(std::uint64_t));
  Draws draws;
  draws.states.cpu = bytes.narrow(0, 0, cpu).clone();
  std::memcpy(&draws.seed, static_cast<const std::byte*>(bytes.const_data_ptr()) + cpu, sizeof draws.seed);
  if (bytes.numel() > cpu + seedBytes)
    draws.states.gpu = bytes.narrow(0, cpu + seedBytes, bytes.numel() - cpu - seedBytes).clone();
  return draws;
}

/// An evaluator whose draws go on from `generator`.
Evaluator drawingFrom(const TensorData& generator, const Analysis& stage) {
  const auto draws = unpacked(generator);
  Evaluator evaluator(*stage.document, draws.seed);
  evaluator.setGenerators(draws.states);
  return evaluator;
}

TensorData generatorOf(const Evaluator& evaluator, const TensorData& before) {
  return packed({unpacked(before).seed, evaluator.generators()});
}

bool isUser(const OutputSpec& output) { return output.kind == OutputKind::user || output.kind == OutputKind::loss; }

std::optional<TensorData> outputOf(const Evaluator& evaluator, ValueId id, Results results) {
  if (!evaluator.hasTensor(id)) return std::nullopt;
  // Borrowed memory knows no lazy conjugation or negation.
  const auto plain = evaluator.tensor(id).resolve_conj().resolve_neg();
  return keepTensor(results == Results::onHost ? plain.to(at::kCPU) : plain);
}

/// As copyOut(), where the tensor is.
TensorData copyThere(const at::Tensor& tensor) {
  const auto plain =
      (tensor.layout() == at::kStrided ? tensor : tensor.to_dense()).detach().resolve_conj().resolve_neg().contiguous();
  return keepTensor(plain.is_alias_of(tensor) ? plain.clone() : plain);
}

TensorMap gradientsOf(const Analysis& stage, const Evaluator& evaluator, Results results) {
  return retrograd::gradientsOf(stage, evaluator, results == Results::onHost ? copyOut : copyThere);
}

/// Where the stage has the value.
at::Tensor placed(const Analysis& stage, ValueId id, const TensorData& data) {
  return Placement().place(data, stage.document->isTensor(id) ? stage.document->meta(id).device : Device());
}

/// What a backward starts from.
void bindBackward(Evaluator& evaluator, const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents) {
  evaluator.takeDraws(saved.draws);
  for (const auto& [id, value] : saved.values) evaluator.bind(id, value);
  const auto& computation = stage.computation();
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto id = stage.joint.inputs.at(computation.inputs.size() + i);
    if (!id) continue;
    const auto position = userOutputPosition(computation, i);
    const auto it = cotangents.find(position);
    if (it == cotangents.end())
      throw Error(ErrorCode::badUse, "the stage was derived with a cotangent for it, and none is given",
                  "output " + position);
    evaluator.bind(id, placed(stage, id, it->second)
                           .contiguous());  // as the backward was derived; what a later stage made may lie otherwise
  }
  for (const auto& [id, data] : stage.constants) evaluator.bind(id, placed(stage, id, data));
}

}  // namespace

BackwardHalves halvesOf(const Analysis& stage) {
  std::vector<char> isInput;
  for (const auto& input : stage.computation().inputs) isInput.push_back(input.kind == InputKind::user);
  return splitBackward(*stage.document, stage.backward, isInput);
}

TensorData seededGenerator(std::uint64_t seed) { return packed({seed, {seededState(seed), {}}}); }

std::shared_ptr<const StageTensors> placeWeights(const Analysis& stage) {
  return std::make_shared<StageTensors>(StageTensors{inputValues(stage)});
}

StageForward runStageForward(const Analysis& stage, const TensorMap& inputs, const TensorData& generator,
                             const std::shared_ptr<const StageTensors>& given, Results results,
                             const TensorMap& buffers) {
  const auto weights = given ? given : placeWeights(stage);
  auto evaluator = drawingFrom(generator, stage);
  for (const auto& [id, value] : weights->values) evaluator.bind(id, value);
  const auto& computation = stage.computation();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto& input = computation.inputs[i];
    const auto value = computation.trace.inputs[i];
    const auto found = input.kind == InputKind::user ? buffers.end() : buffers.find(resultKey(input, "b."));
    if (value && found != buffers.end())
      evaluator.bind(value, placed(stage, value,
                                   fittedInput(found->second, stage.document->meta(value), "buffer " + input.target)));
  }
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto it =
        computation.inputs[i].kind == InputKind::user ? inputs.find(computation.inputs[i].name) : inputs.end();
    const auto id = computation.trace.inputs[i];
    if (!id || it == inputs.end()) continue;
    // A value is dense on its way; views here may hold only in the strides that the stage was derived for, which are
    // those of the whole model.
    const auto derivedFor = stage.request.inputs.find(it->first);
    evaluator.bind(id, placed(stage, id,
                              derivedFor == stage.request.inputs.end()
                                  ? it->second
                                  : fittedInput(it->second, derivedFor->second.meta, "input " + it->first)));
  }
  for (auto op : stage.forward.ops) evaluator.run(op);

  StageForward result{{}, mutatedOf(stage, evaluator), nullptr, generatorOf(evaluator, generator)};
  for (std::size_t i = 0; i < computation.outputs.size(); ++i)
    if (isUser(computation.outputs[i])) result.outputs.push_back(outputOf(evaluator, stage.joint.outputs[i], results));
  result.saved = std::make_shared<StageSaved>(StageSaved{{}, Evaluator(*stage.document, stage.request.seed)});
  result.saved->draws.takeDraws(evaluator);
  for (std::size_t i = 0; i < stage.backward.savedCount; ++i)
    if (const auto id = stage.backward.inputs[i]; id && evaluator.has(id))
      result.saved->values.emplace_back(id, evaluator.value(id));
  return result;
}

void keepBuffers(TensorMap& buffers, const StageForward& forward) {
  for (const auto& [name, tensor] : forward.mutated)
    if (name.starts_with("b.")) buffers.insert_or_assign(name, tensor);
}

StageBackward runStageBackward(const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents,
                               const TensorData& generator, Results results) {
  auto evaluator = drawingFrom(generator, stage);
  bindBackward(evaluator, stage, saved, cotangents);
  for (auto op : stage.backward.ops) evaluator.run(op);
  return {gradientsOf(stage, evaluator, results), generatorOf(evaluator, generator)};
}

StageInputGradients runStageInputBackward(const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents,
                                          const TensorData& generator, Results results) {
  const auto halves = halvesOf(stage);
  auto evaluator = drawingFrom(generator, stage);
  bindBackward(evaluator, stage, saved, cotangents);
  for (auto op : halves.inputGradients.ops) evaluator.run(op);
  StageInputGradients result{{}, std::make_shared<StageTensors>(), generatorOf(evaluator, generator)};
  for (const auto& [name, gradient] : gradientsOf(stage, evaluator, results))
    if (name.starts_with("in.")) result.gradients.emplace(name, gradient);
  for (auto id : halves.weightGradients.inputs)
    if (evaluator.has(id)) result.rest->values.emplace_back(id, evaluator.value(id));
  return result;
}

TensorMap runStageWeightBackward(const Analysis& stage, const StageTensors& rest, Results results) {
  const auto halves = halvesOf(stage);
  Evaluator evaluator(*stage.document, stage.request.seed);
  for (const auto& [id, value] : rest.values) evaluator.bind(id, value);
  for (const auto& [id, data] : stage.constants) evaluator.bind(id, placed(stage, id, data));
  for (auto op : halves.weightGradients.ops) evaluator.run(op);
  TensorMap gradients;
  for (const auto& [name, gradient] : gradientsOf(stage, evaluator, results))
    if (name.starts_with("p.")) gradients.emplace(name, gradient);
  return gradients;
}

TensorData sentTensor(const TensorData& tensor) {
  const auto plain = borrowTensor(tensor);
  if (!plain.is_non_overlapping_and_dense()) return keepTensor(plain.contiguous());
  return keepTensor(at::empty_strided(plain.sizes(), plain.strides(), plain.options()).copy_(plain));
}

TensorData addTensors(const TensorData& a, const TensorData& b) {
  const auto there = borrowTensor(b);
  return keepTensor(at::add(borrowTensor(a).to(there.device()), there));
}

TensorData hostTensor(const TensorData& tensor) {
  return tensor.memory.type == Device::Type::cpu ? tensor : keepTensor(borrowTensor(tensor).to(at::kCPU));
}

}  // namespace retrograd
