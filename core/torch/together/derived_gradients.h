#pragma once
#include <vector>

#include "core/torch/together/gradient_audit.h"

namespace retrograd {

/// For ranks that compute a loss together: the forwards of all of them run side by side under LibTorch's autograd, with
/// collectives computed from the ranks' values, and the mean of their losses is differentiated once. What a recorded
/// backward did, collectives of it included, plays no part. By rank; a rank that computes alone has nothing.
/// Of one backward; several, shards that forwards gather (FSDP) and ops that nobody can run are refused with the
/// reason.
std::vector<DerivedGradients> deriveTogether(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                             const Meetings& meetings, SpilledTensors& spilled,
                                             const Progress& progress = {});

}  // namespace retrograd
