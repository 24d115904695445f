#pragma once
// Which call of one rank meets which calls of the others.
#include <cstdint>
#include <vector>

#include "core/judge/report.h"
#include "core/questions/ranks/collective.h"

namespace retrograd {

/// What one rank of a run recorded.
struct RankStep {
  std::int64_t rank = 0;
  std::shared_ptr<const Analysis> analysis;
  std::vector<Collective> collectives;

  const Document& document() const { return *analysis->document; }
  const StepRecording& recording() const { return *analysis->file.recording; }
};

/// One collective of all ranks of a group.
struct Meeting {
  struct Member {
    std::size_t step;        ///< among the RankSteps
    std::size_t collective;  ///< among its collectives
  };
  std::vector<Member> members;  ///< in the group's order; of a transfer the sender, then the receiver
};

struct Meetings {
  std::vector<Meeting> all;          ///< in the order of the first member's
  std::vector<Claim> claims;         ///< where ranks call something else, in another order, or do not come
  std::vector<NotJudged> notJudged;  ///< groups of which a rank has no recording
};

/// Pairs the n-th collective of each group over its ranks, and sends with receives. Where they are not the same call,
/// the group is followed no further: what comes later would be paired by chance.
Meetings meetingsOf(const std::vector<RankStep>& ranks);

}  // namespace retrograd
