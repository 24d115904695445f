#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/torch/stages/microbatches.h"

namespace retrograd {

/// What a rank has after its row of a schedule.
struct RankResults {
  TensorMap gradients;  ///< "p.<name>", summed over microbatches and what ranks share, times `scale`
  double scale = 1;
  std::map<std::string, std::map<std::int32_t, TensorData>> outputs;  ///< by user output, then by microbatch
  TensorMap buffers;          ///< "b.<name>", those that were written, behind the last microbatch
  std::set<std::string> due;  ///< gradients that this rank has to have, where the model has them
};

/// The outputs of the batch, "out.<position>".
TensorMap mergedOutputs(const RankResults& results, const std::map<std::string, Merge>& merges);

/// Compares with the model in one piece: over the whole batch where it could be derived for that, else over each
/// microbatch, summed. Written buffers are compared in the second case only: what a model does to them once for a batch
/// it does for each microbatch here. A note says which of the two it was. Throws Error(execution), Error(cancelled).
Report checkRank(const RankResults& results, const std::vector<Microbatch>& microbatches, const WholeBatch& batch,
                 const std::map<std::string, Merge>& merges, const Progress& progress = {});

}  // namespace retrograd
