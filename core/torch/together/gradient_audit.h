#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/torch/together/rank_run.h"

namespace retrograd {

/// Ranks whose forwards exchange what depends on the batch compute one loss together, as those of tensor parallelism
/// do. By rank, the first one that it computes with.
std::vector<std::size_t> unitsOf(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs);

/// A loss is the mean over its batch, or the sum: what gradients of several batches have to be, too.
enum class LossKind : std::uint8_t { unknown, mean, sum };
LossKind lossKindOf(const RankStep& rank);

/// What the losses of a unit say each rank's copy of a parameter has to do with them: the derivative of their mean.
struct DerivedGradients {
  std::map<std::pair<std::int32_t, std::string>, SpilledTensors::Place> of;  ///< by step and parameter
  std::string refusal;                                                       ///< why there are none; empty: there are
};

/// The part of a whole tensor that a rank holds; undefined where the placements do not say.
at::Tensor partOf(at::Tensor whole, const RecordedShard& shard, std::int64_t rank);

/// Each parameter's gradient, as an update read it, against what the ranks' own gradients give together.
struct GradientsJudged {
  std::set<std::string> judged, due;  ///< parameters
  std::vector<Claim> claims;
  std::vector<NotJudged> notJudged;
  std::vector<std::string> notes;
};
/// `derived`: by rank, of those that do not compute alone. The copies of a parameter within a unit add up; over units
/// the gradient is the mean, or for a loss that is a sum the sum.
GradientsJudged judgeGradients(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                               const std::vector<DerivedGradients>& derived, const SpilledTensors& spilled);

}  // namespace retrograd
