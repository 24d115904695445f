#pragma once
#include <vector>

#include "core/formats/model_file.h"
#include "core/pipeline/split.h"

namespace retrograd {

/// One stage as a model of its own: it can be derived, run, checked and saved as any other. What it is sent are its user inputs, under the names
/// that the values have in the whole model; what it sends are its first user outputs.
struct StageModel {
  ModelFile file;
  std::vector<BoundSymbolId> originOf;  ///< by bound symbol of the stage: the op of the whole model; none for a copy made on arrival
  std::vector<ValueId> valueOf;         ///< by value of the stage: the value of the whole model; none likewise
};

/// Takes stage `index` out of a model. Sent values are dense: one that has gaps or overlaps in memory arrives contiguous. A received value that the
/// stage writes in place is copied on arrival, so that it keeps its gradient. `lookup` gives the op for that.
/// Throws Error(badUse) where there is no such stage, and where an op reads memory around a sent value (as_strided), which is not sent.
StageModel stageModel(const ModelFile& model, const PipelineSplit& split, std::size_t index, const SymbolLookup& lookup);

/// Meta of a value as it arrives in another stage: at offset 0 in memory of its own, dense, without lazy conjugation or negation.
TensorMeta sentMeta(const TensorMeta& meta);

}  // namespace retrograd
