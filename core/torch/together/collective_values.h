#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/questions/ranks/meetings.h"
#include "core/torch/together/rank_run.h"

namespace retrograd {

/// How far rounding to a dtype moves a number, of its own size at most.
double epsilonOf(at::ScalarType type);

/// What a collective gives, computed from what all ranks gave.
struct ComputedResult {
  at::Tensor value;     ///< in double precision where numbers were reduced
  double rounding = 0;  ///< how far an element may be off: of a sum or product in the dtype of its operands
};
/// `given`: the n-th tensor that a member of the meeting put in. None: it cannot be computed, and `why` says so.
std::optional<ComputedResult> computeResult(const std::vector<RankStep>& ranks, const Meeting& meeting,
                                            std::size_t member, std::size_t result,
                                            const std::function<at::Tensor(std::size_t member, std::size_t n)>& given,
                                            std::string& why);

/// Compares the recorded results of all collectives with what the ranks' recorded runs put in: bit for bit where
/// nothing is reduced, else within the rounding of the reduction. Adds claims, and what could not be compared.
struct CollectivesJudged {
  std::size_t compared = 0;
  std::vector<Claim> claims;
  std::vector<std::string> notes;
};
CollectivesJudged judgeCollectives(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                   const Meetings& meetings, const SpilledTensors& spilled);

}  // namespace retrograd
