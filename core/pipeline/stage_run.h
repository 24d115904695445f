#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/debug/analysis.h"

namespace retrograd {

/// What a stage's forward leaves for its backward: the saved values and the states that replayed draws start from.
struct StageSaved;

struct StageForward {
  std::vector<std::optional<TensorData>> outputs;  ///< user outputs in order; none for numbers and None
  TensorMap mutated;                               ///< "b.<buffer>", "in.<input>"
  std::shared_ptr<StageSaved> saved;
  TensorData generator;                            ///< state behind the forward's draws
};

struct StageBackward {
  TensorMap gradients;                             ///< "p.<parameter>", "in.<input>"; none where there is no gradient
  TensorData generator;
};

/// State of the generator that `seed` makes: what the first stage starts from.
TensorData seededGenerator(std::uint64_t seed);

/// Runs the forward trace of a derived stage. `inputs`: by name, in place of those it was derived for, and of their shapes.
/// `weights`: buffers and parameters by name, in place of the file's. Throws Error(execution) naming the op.
StageForward runStageForward(const Analysis& stage, const TensorMap& inputs, const TensorData& generator, const TensorMap& weights = {});

/// Runs the backward trace on what a forward left. `cotangents`: by user output as text, for the outputs the stage was derived with.
StageBackward runStageBackward(const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents, const TensorData& generator);

/// The same backward in its two halves (backward_halves.h): the gradients of what the stage received first, those of its parameters when it suits.
struct StageHalf;  ///< what dI leaves for dW
struct StageInputGradients {
  TensorMap gradients;               ///< "in.<input>"
  std::shared_ptr<StageHalf> rest;
  TensorData generator;
};
StageInputGradients runStageInputBackward(const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents, const TensorData& generator);
/// "p.<parameter>".
TensorMap runStageWeightBackward(const Analysis& stage, const StageHalf& rest);

/// The tensor as it arrives in another stage: in dense memory of its own (stage_model.h: sentMeta).
TensorData sentTensor(const TensorData& tensor);
/// The sum of two gradients.
TensorData addTensors(const TensorData& a, const TensorData& b);

}  // namespace retrograd
