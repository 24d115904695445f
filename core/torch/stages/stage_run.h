#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/cut/backward_halves.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// What a stage's forward leaves for its backward: the saved values and the states that replayed draws start from.
struct StageSaved;
/// Values of a stage where it runs.
struct StageTensors;

struct StageForward {
  std::vector<std::optional<TensorData>> outputs;  ///< user outputs in order; none for numbers and None
  TensorMap mutated;                               ///< "b.<buffer>", "in.<input>"
  std::shared_ptr<StageSaved> saved;
  TensorData generator;  ///< state behind the forward's draws
};

struct StageBackward {
  TensorMap gradients;  ///< "p.<parameter>", "in.<input>"; none where there is no gradient
  TensorData generator;
};

/// Where the tensors that a stage has computed are: copied to the host, or where it computed them.
enum class Results { onHost, inPlace };

/// State of the generators, the CPU's and a GPU's, that `seed` makes: what the first stage starts from. An opaque
/// tensor of bytes.
TensorData seededGenerator(std::uint64_t seed);

/// Parameters, buffers, constants and sample inputs of a stage where it runs, so that several forwards share one upload
/// to a GPU. On the CPU they are borrowed.
std::shared_ptr<const StageTensors> placeWeights(const Analysis& stage);

/// Runs the forward trace of a derived stage. `inputs`: by name, instead of those it was derived for, and of their
/// shapes. `placed`: the stage's weights, where they are there already. `buffers`: what earlier forwards left in
/// buffers, "b.<buffer>", instead of the file's content. Throws Error(execution) naming the op.
StageForward runStageForward(const Analysis& stage, const TensorMap& inputs, const TensorData& generator,
                             const std::shared_ptr<const StageTensors>& placed = {}, Results results = Results::onHost,
                             const TensorMap& buffers = {});

/// Takes into `buffers` what a forward has written to the model's own tensors: what the next forward of the stage
/// starts from.
void keepBuffers(TensorMap& buffers, const StageForward& forward);

/// Runs the backward trace on what a forward left. `cotangents`: by user output as text, for the outputs the stage was
/// derived with.
StageBackward runStageBackward(const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents,
                               const TensorData& generator, Results results = Results::onHost);

/// The two halves of a stage's backward: what leads to a gradient of what it received, and the rest
/// (backward_halves.h).
BackwardHalves halvesOf(const Analysis& stage);

/// The same backward in its two halves (backward_halves.h): the gradients of what the stage received first, those of
/// its parameters when it suits.
struct StageInputGradients {
  TensorMap gradients;                 ///< "in.<input>"
  std::shared_ptr<StageTensors> rest;  ///< what dI leaves for dW
  TensorData generator;
};
StageInputGradients runStageInputBackward(const Analysis& stage, const StageSaved& saved, const TensorMap& cotangents,
                                          const TensorData& generator, Results results = Results::onHost);
/// "p.<parameter>".
TensorMap runStageWeightBackward(const Analysis& stage, const StageTensors& rest, Results results = Results::onHost);

/// The tensor as it travels to another stage: in dense memory of its own. The stage lays it out in the strides that it
/// was derived for.
TensorData sentTensor(const TensorData& tensor);
/// The sum of two gradients, where the second one is.
TensorData addTensors(const TensorData& a, const TensorData& b);
/// Adds a gradient to the sum under its key.
template <class Map>
void addTo(Map& sums, const typename Map::key_type& key, const TensorData& term) {
  const auto [sum, isNew] = sums.try_emplace(key, term);
  if (!isNew) sum->second = addTensors(sum->second, term);
}
/// The tensor in memory of the host: itself where it is there.
TensorData hostTensor(const TensorData& tensor);

}  // namespace retrograd
