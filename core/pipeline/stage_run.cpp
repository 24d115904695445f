#include "core/pipeline/stage_run.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty_strided.h>

#include "core/debug/bindings.h"
#include "core/debug/results.h"
#include "core/execution/evaluator.h"
#include "core/pipeline/backward_halves.h"
#include "core/tracing/generator.h"

namespace retrograd {

struct StageSaved {
  std::vector<std::pair<ValueId, c10::IValue>> values;
  Evaluator draws;  // holds what replays of draws start from
};

struct StageHalf {
  std::vector<std::pair<ValueId, c10::IValue>> values;
};

namespace {

at::Tensor generatorFrom(const TensorData& state) { return borrowTensor(state).clone(); }

bool isUser(const OutputSpec& output) { return output.kind == OutputKind::user || output.kind == OutputKind::loss; }

std::optional<TensorData> outputOf(const Evaluator& evaluator, ValueId id) {
  if (!id || !evaluator.has(id) || !evaluator.value(id).isTensor()) return std::nullopt;
  // Borrowed memory knows no lazy conjugation or negation.
  return keepTensor(evaluator.tensor(id).resolve_conj().resolve_neg());
}

/// What a backward starts from.
void bindBackward(Evaluator& evaluator, const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents, const TensorData& generator) {
  evaluator.setGenerators({generatorFrom(generator), {}});
  evaluator.takeDraws(saved.draws);
  for (const auto& [id, value] : saved.values) evaluator.bind(id, value);
  const auto& computation = stage.computation();
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto id = stage.joint.inputs.at(computation.inputs.size() + i);
    if (!id) continue;
    const auto position = userOutputPosition(computation, i);
    const auto it = cotangents.find(position);
    if (it == cotangents.end()) throw Error(ErrorCode::badUse, "the stage was derived with a cotangent for it, and none is given", "output " + position);
    evaluator.bind(id, borrowTensor(it->second));
  }
  for (const auto& [id, data] : stage.constants) evaluator.bind(ValueId(std::stoll(id)), borrowTensor(data));
}

BackwardHalves halvesOf(const Analysis& stage) {
  std::vector<char> isInput;
  for (const auto& input : stage.computation().inputs) isInput.push_back(input.kind == InputKind::user);
  return splitBackward(*stage.document, stage.backward, isInput);
}

}  // namespace

TensorData seededGenerator(std::uint64_t seed) { return keepTensor(seededState(seed)); }

StageForward runStageForward(const Analysis& stage, const TensorMap& inputs, const TensorData& generator, const TensorMap& weights) {
  Evaluator evaluator(*stage.document, stage.seed);
  evaluator.setGenerators({generatorFrom(generator), {}});
  for (auto& [id, value] : inputBindings(stage)) evaluator.bind(id, std::move(value));
  const auto& computation = stage.computation();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto& input = computation.inputs[i];
    const auto& given = input.kind == InputKind::user ? inputs : weights;
    const auto it = given.find(input.kind == InputKind::user ? input.name : input.target);
    if (it != given.end() && computation.trace.inputs[i]) evaluator.bind(computation.trace.inputs[i], borrowTensor(it->second));
  }
  for (auto op : stage.forward.ops) evaluator.run(op);

  StageForward result{{}, mutatedOf(stage, evaluator), nullptr, keepTensor(evaluator.generators().cpu)};
  for (std::size_t i = 0; i < computation.outputs.size(); ++i)
    if (isUser(computation.outputs[i])) result.outputs.push_back(outputOf(evaluator, stage.joint.outputs[i]));
  result.saved = std::make_shared<StageSaved>(StageSaved{{}, Evaluator(*stage.document, stage.seed)});
  result.saved->draws.takeDraws(evaluator);
  for (std::size_t i = 0; i < stage.backward.savedCount; ++i)
    if (const auto id = stage.backward.inputs[i]; id && evaluator.has(id)) result.saved->values.emplace_back(id, evaluator.value(id));
  return result;
}

StageBackward runStageBackward(const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents, const TensorData& generator) {
  Evaluator evaluator(*stage.document, stage.seed);
  bindBackward(evaluator, stage, saved, cotangents, generator);
  for (auto op : stage.backward.ops) evaluator.run(op);
  return {gradientsOf(stage, evaluator), keepTensor(evaluator.generators().cpu)};
}

StageInputGradients runStageInputBackward(const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents, const TensorData& generator) {
  const auto halves = halvesOf(stage);
  Evaluator evaluator(*stage.document, stage.seed);
  bindBackward(evaluator, stage, saved, cotangents, generator);
  for (auto op : halves.inputGradients.ops) evaluator.run(op);
  StageInputGradients result{{}, std::make_shared<StageHalf>(), keepTensor(evaluator.generators().cpu)};
  for (const auto& [name, gradient] : gradientsOf(stage, evaluator))
    if (name.starts_with("in.")) result.gradients.emplace(name, gradient);
  for (auto id : halves.weightGradients.inputs)
    if (evaluator.has(id)) result.rest->values.emplace_back(id, evaluator.value(id));
  return result;
}

TensorMap runStageWeightBackward(const Analysis& stage, const StageHalf& rest) {
  const auto halves = halvesOf(stage);
  Evaluator evaluator(*stage.document, stage.seed);
  for (const auto& [id, value] : rest.values) evaluator.bind(id, value);
  for (const auto& [id, data] : stage.constants) evaluator.bind(ValueId(std::stoll(id)), borrowTensor(data));
  for (auto op : halves.weightGradients.ops) evaluator.run(op);
  TensorMap gradients;
  for (const auto& [name, gradient] : gradientsOf(stage, evaluator))
    if (name.starts_with("p.")) gradients.emplace(name, gradient);
  return gradients;
}

TensorData sentTensor(const TensorData& tensor) {
  const auto plain = borrowTensor(tensor);
  if (!plain.is_non_overlapping_and_dense()) return keepTensor(plain.contiguous());
  return keepTensor(at::empty_strided(plain.sizes(), plain.strides(), plain.options()).copy_(plain));
}

TensorData addTensors(const TensorData& a, const TensorData& b) { return keepTensor(at::add(borrowTensor(a), borrowTensor(b))); }

}  // namespace retrograd
