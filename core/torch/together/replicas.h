#pragma once
#include <set>
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/torch/together/rank_run.h"

namespace retrograd {

/// Whether two ranks hold copies of one plain tensor that have parted: unequal, and nearly so in each element. Parts of
/// one whole have nothing in common.
bool arePartedCopies(const RankWeight& a, const RankWeight& b, const SpilledTensors& spilled);

/// Ranks of one unit that draw differently from equal values.
std::vector<Claim> judgeDraws(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                              const std::vector<std::size_t>& units);

/// Weights that have to be equal before and after the update, batches that should differ.
/// `units`: as unitsOf() gives them. `explained`: parameters of which is said why they part.
std::vector<Claim> judgeReplicas(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                 const std::vector<std::size_t>& units, const std::set<std::string>& explained,
                                 const SpilledTensors& spilled);

}  // namespace retrograd
