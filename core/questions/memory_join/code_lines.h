#pragma once
#include "core/questions/memory_join/memory_join.h"

namespace retrograd {

/// Joins what the lines of Inductor's code made (TracedStep::code). A line whose memory is one result of the graph is
/// exact; where the memory had other values before, it is aligned, and so is a result that stays in the code, whose op,
/// size and order agree.
void joinByCode(const MemoryPlaces& places, MemoryJoin& join);

/// Joins what was made while a job's graph ran: frames name the node, or the line of the code that torch.fx generates,
/// which has one line for each node. What an op takes besides its results is its own (JoinedAllocation::within).
void joinByNodes(const MemoryPlaces& places, MemoryJoin& join);

}  // namespace retrograd
