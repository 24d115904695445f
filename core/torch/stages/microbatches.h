#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/torch/stages/merge.h"
#include "core/torch/stages/open_pipeline.h"
#include "core/torch/stages/pipeline.h"

namespace retrograd {

/// What the stages of a pipeline compute in one microbatch.
struct Microbatch {
  std::shared_ptr<const Pipeline> pipeline;  ///< derived for its shapes; microbatches of one shape share it
  TensorMap inputs;                          ///< of the model, as it takes them
  TensorMap cotangents;                      ///< from outside, by user output as text
};

/// Microbatches of the sample that the pipeline was derived for: each has the inputs' elements rotated by its number,
/// so that microbatches differ and every element stays one that the model can take.
std::vector<Microbatch> rotatedMicrobatches(const std::shared_ptr<const Pipeline>& pipeline, std::int32_t count);

/// What to derive a file with for these inputs and cotangents.
using RequestForInputs =
    std::function<DerivationRequest(const ModelFile& model, const TensorMap& inputs, const TensorMap& cotangents)>;

/// Microbatches of a batch, `inputs` and `cotangents` by microbatch. `cut.whole` is derived for the first; where one
/// has other shapes, the stages are derived for these as well, cut alike. Throws Error naming the microbatch: badUse
/// where the model does not take it, else as derivePipeline().
std::vector<Microbatch> deriveMicrobatches(const CutModel& cut, const std::string& loss,
                                           const std::vector<TensorMap>& inputs,
                                           const std::vector<TensorMap>& cotangents, const RequestForInputs& requestFor,
                                           const Progress& progress = {});

/// Cotangents of the whole batch under which the model in one piece gives the gradients that the microbatches add up
/// to, each times `scale`. Of an output without a dimension, a loss, that is so where the batch's is their sum, or with
/// a scale of 1 over their number their mean; `merges` may say it otherwise. Throws Error(badUse) where they differ
/// between microbatches without being parts of one.
TensorMap batchCotangents(const std::vector<Microbatch>& microbatches, const std::map<std::string, Merge>& merges,
                          double scale);

/// The batch for the model in one piece.
struct WholeBatch {
  std::shared_ptr<const Analysis> analysis;  ///< null where it cannot be run
  std::string whyNot;                        ///< "the model draws random numbers, ..."
};
/// Derives the model for the whole batch, so that what its microbatches give can be compared. `inputs`: of the batch.
/// Throws Error(cancelled).
WholeBatch deriveBatch(const CutModel& cut, const std::vector<Microbatch>& microbatches, const TensorMap& inputs,
                       const std::map<std::string, Merge>& merges, double scale, const RequestForInputs& requestFor,
                       const Progress& progress = {});

}  // namespace retrograd
