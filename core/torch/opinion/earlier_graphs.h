#pragma once
#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/formats/jobs/input_sources.h"
#include "core/formats/jobs/job_log.h"
#include "core/torch/opinion/second_opinion.h"

namespace retrograd {

struct EarlierResult {
  std::string compile;  ///< "1/0"
  TensorData value;
};

/// Where a function was compiled in several graphs (a graph break), a later graph takes what an earlier one gave as a
/// local variable: "h". Runs the forward graph of the compile that gave it, on the request's weights and batch, and on
/// what still earlier ones gave. nullopt where no earlier graph of that function gave a value of this name and type.
/// Throws Error as jobInputs() for inputs of the earlier compile.
std::optional<EarlierResult> earlierResult(const jobs::JobLog& log, const jobs::GraphChoice& choice,
                                           const jobs::InputSource& source, const TensorMeta& type,
                                           const SecondOpinionRequest& request, const Progress& progress);

/// Whether it is a value that lay on the interpreter's stack at a graph break ("___stack0"): a result of code that ran
/// between two graphs, or of the graph before.
bool isBetweenGraphs(const jobs::InputSource& source);

}  // namespace retrograd
