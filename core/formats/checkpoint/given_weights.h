#pragma once
#include <map>
#include <string>

#include "core/base/progress.h"
#include "core/formats/checkpoint/given_data.h"
#include "core/formats/model/model_file.h"

namespace retrograd {

/// Replaces the model's parameters and buffers by the tensors of a checkpoint that have the same names, laid out as
/// before. A tied parameter takes the tensor of any of its names; where the checkpoint has several, they must be equal.
/// A buffer that a state dict does not hold stays as it is. Adds a note to the file's problems that says what was bound
/// and from where. Throws Error(badUse) listing all that is missing, superfluous or of another shape or dtype, unless
/// `given.partial`; Error as readCheckpoint().
void bindWeights(ModelFile& file, const GivenData& given, const Progress& progress = {});

/// All tensors of `given.weights` by their own names, whatever they are for: those of the dictionary `given.under`,
/// else of the usual one for a model where there is such, else all. Throws Error(badUse) where there are none; Error as
/// readCheckpoint().
TensorMap readWeights(const GivenData& given, const Progress& progress = {});

/// User inputs read from a batch.
struct Batch {
  TensorMap tensors;  ///< by the model's name of the input
  std::map<std::string, Argument> numbers;
  std::string note;  ///< what was left out, where that is allowed
};

/// Reads a batch for the model's user inputs: by name ("x" or "in.x"), or by position where the file holds a list or
/// tuple. Sizes may differ from the model's (it may be dynamic: whoever derives checks them), ranks and dtypes may not.
/// Throws Error(badUse) as bindWeights() does.
Batch readBatch(const ModelFile& file, const GivenData& given, const Progress& progress = {});

/// All tensors and numbers of a batch file by their own names. Throws Error(badInput).
Batch readBatchFile(const std::string& path, const Progress& progress = {});

}  // namespace retrograd
