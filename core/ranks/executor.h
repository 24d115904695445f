#pragma once
#include <cstddef>
#include <vector>

#include "core/base/progress.h"
#include "core/ranks/stage_runner.h"
#include "core/ranks/transport.h"
#include "core/schedule/schedule.h"

namespace retrograd {

/// An action that ran, and when, in seconds from the start of the row.
struct ExecutedAction {
  Action action;  ///< an overlap's parts run in turn and are listed as such
  double start = 0, end = 0;
};

/// Runs the row of transport.rank() in a schedule with its transfers (lowerSchedule): once forward and backward of all
/// microbatches. Sends go out in the background, receipts are under way from their RECV until a stage reads them;
/// stages of one rank hand over directly. A failure here is reported to the other ranks, and one there ends what waits
/// here. Throws Error(badUse) for a schedule of another number of ranks, or one with actions on sharded parameters; as
/// requireValid; what the runner throws, at the action; and as Transport. `link`: tensors that lie on its device are
/// sent over it; all ranks have one or none, made with rankPairs(schedule).
std::vector<ExecutedAction> runRank(const Schedule& schedule, Transport& transport, StageRunner& runner,
                                    const Progress& progress = {}, DeviceLink* link = nullptr);

/// Adds up tensors over all ranks, in place; a rank that lacks one takes part with zeros and gets the sum. `shared`:
/// what is to be added up, the same on all ranks: gradients of parameters that several stages use. Order is by name.
/// Over a link they are summed, and stay, on its device.
void sumOverRanks(Transport& transport, TensorMap& tensors, const std::map<std::string, TensorMeta>& shared,
                  DeviceLink* link = nullptr);

/// The numbers that rank 0 has; those of the others count for nothing. All ranks call it in one order. Throws as
/// Transport.
std::vector<std::size_t> fromFirstRank(Transport& transport, const std::vector<std::size_t>& numbers);

}  // namespace retrograd
