#pragma once
#include "core/torch/together/gradient_audit.h"

namespace retrograd {

/// Each gradient of the ranks' first update against that of a recording of one process on the whole batch, by the
/// parameter's name (DistributedDataParallel's "module." aside). What cannot be compared has its reason: weights that
/// were others, parts that no placement explains.
GradientsJudged judgeAgainstSingle(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                   const RankRun& single, const SpilledTensors& spilled);

}  // namespace retrograd
