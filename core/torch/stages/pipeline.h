#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/id_vector.h"
#include "core/cut/pipeline_split.h"
#include "core/cut/stage_model.h"
#include "core/torch/analysis/joint_run.h"

namespace retrograd {

/// A model in stages, each derived on its own: forward and backward as of any model, with cotangents for those of its
/// outputs that get a gradient from a later stage or from outside, and gradients for those of its inputs that need one.
struct Pipeline {
  std::shared_ptr<const Analysis>
      whole;            ///< the model in one piece: inputs, cotangents, seed, and what to compare with
  PipelineSplit split;  ///< ids of the whole model's document as it was read
  std::vector<std::shared_ptr<const Analysis>> stages;
  std::vector<IdVector<BoundSymbolId, BoundSymbolId>>
      originOf;  ///< by stage, of the ops of its computation: the op of the whole model
  std::vector<IdVector<ValueId, ValueId>> valueOf;  ///< the same for values
};

/// Derives the stages of `whole`, whose model `model` is as it was read (deriving changes a document: give one of its
/// own). Numbers and shapes that cross are those of `whole`'s inputs. Backwards are derived from the last stage to the
/// first: a stage gets cotangents for outputs whose gradient is not None, so that what contributes nothing to the loss
/// is skipped. Throws Error as analyse() and splitPipeline() do, unsupportedOp where a stage cannot be derived.
Pipeline derivePipeline(ModelFile model, std::shared_ptr<const Analysis> whole, PipelineSplit split,
                        const Progress& progress = {});

/// The whole pipeline once: all forwards in order, then all backwards from the last stage to the first, with nothing
/// crossing but what `split.edges` says. Results, gradients and mutations by the names that the whole model gives them;
/// gradients of a parameter that several stages hold are summed, and so are those of a value that several stages use.
RunResult runPipeline(const Pipeline& pipeline, const Progress& progress = {});

/// The first of a tied parameter's names, by any of them.
std::string firstName(const Computation& computation, const std::string& parameter);

/// Which inputs of the computation are differentiated when `whole` is derived.
std::vector<char> differentiatedInputs(const ModelFile& model, const Analysis& whole);

}  // namespace retrograd
