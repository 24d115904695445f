#pragma once
#include "core/questions/memory_join/memory_join.h"

namespace retrograd {

/// Joins what was made while a job's graph ran: frames name the node, or the line of the code that torch.fx generates,
/// which has one line for each node. What an op takes besides its results is its own (JoinedAllocation::within).
void joinByNodes(const MemoryPlaces& places, MemoryJoin& join);

}  // namespace retrograd
