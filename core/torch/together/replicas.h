#pragma once
#include <set>
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/torch/together/rank_run.h"

namespace retrograd {

/// Weights that have to be equal before and after the update, batches that should differ, draws that should be alike.
/// `units`: as unitsOf() gives them. `explained`: parameters of which is said why they part.
std::vector<Claim> judgeReplicas(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                 const std::vector<std::size_t>& units, const std::set<std::string>& explained);

}  // namespace retrograd
