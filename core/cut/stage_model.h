#pragma once

#include "core/base/id_vector.h"
#include "core/cut/pipeline_split.h"
#include "core/formats/model/model_file.h"

namespace retrograd {

/// One stage as a model of its own: it can be derived, run, checked and saved as any other. The values it gets are its
/// user inputs, under the names that the values have in the whole model; what it sends are its first user outputs.
struct StageModel {
  ModelFile file;
  IdVector<BoundSymbolId, BoundSymbolId>
      originOf;  ///< of the stage's ops: the op of the whole model; none for a copy made on arrival
  IdVector<ValueId, ValueId> valueOf;  ///< of the stage's values: the value of the whole model; none likewise
};

/// Takes stage `index` out of a model. Received values have the strides that they have in the whole model, gaps and
/// overlaps included, for views of them may hold in those only. A received value that the stage writes in place is
/// copied on arrival, so that it keeps its gradient; one with gaps or overlaps is then contiguous. `lookup` gives the
/// op for that. Throws Error(badUse) where there is no such stage, and where an op reads memory around a sent value
/// (as_strided), which is not sent.
StageModel stageModel(const ModelFile& model, const PipelineSplit& split, std::size_t index,
                      const SymbolLookup& lookup);

/// Meta of a value as it arrives in another stage: at offset 0 in memory of its own, without lazy conjugation or
/// negation, in the same strides.
TensorMeta sentMeta(const TensorMeta& meta);

}  // namespace retrograd
