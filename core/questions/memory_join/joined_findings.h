#pragma once
#include "core/questions/memory/memory_finding.h"
#include "core/questions/memory_join/memory_join.h"

namespace retrograd {

/// What a join shows of the blocks that are held after an event, largest first: saved twice, never read, held after the
/// last reader, saved in a wide dtype for one reader that wants a narrower one, taken by one op for itself.
std::vector<MemoryFinding> joinedFindings(const MemoryJoin& join, const MemoryPlaces& places,
                                          const JoinedMoment& moment, std::int64_t event);

}  // namespace retrograd
