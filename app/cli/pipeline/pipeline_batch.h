#pragma once
#include <map>
#include <string>

#include "app/cli/parsing/options.h"
#include "core/cut/batch.h"
#include "core/torch/judging/reference.h"
#include "core/torch/stages/merge.h"

namespace retrograd::cli {

/// The options of a subcommand that takes a batch and cuts it into microbatches.
struct BatchOptions {
  std::string file;                      ///< safetensors; empty: there is no batch
  std::map<std::string, BatchDim> dims;  ///< by input
  std::map<std::string, Merge> merges;   ///< by user output
  bool scaleGradients = false;

  void addTo(Parser parser);
  bool given() const { return !file.empty(); }
};

/// A batch read and cut: inputs and cotangents by microbatch. A number, or the one tensor of an input, goes to
/// all.
struct OpenBatch {
  Reference whole;
  std::vector<TensorMap> inputs, cotangents;
  std::string note;  ///< where there are fewer microbatches than asked for

  /// What a microbatch, or the batch, is derived with.
  Reference with(const TensorMap& inputs, const TensorMap& cotangents) const;
};

/// Reads and cuts the file of the options. Throws Error(badUse) as cutBatch() and cutCotangents(), Error(badInput) for
/// a file that is not a safetensors file.
OpenBatch openBatch(const BatchOptions& options, std::int64_t microbatches);

}  // namespace retrograd::cli
