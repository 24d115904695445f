#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule/schedule.h"

namespace retrograd {

/// What a stage costs for one microbatch, in any unit of time.
struct StageCost {
  double forward = 1, backwardInput = 1, backwardWeight = 1;
  double backward = 2;
  std::int64_t activationBytes = 0;  ///< kept from its forward until its weight gradient is done
};

/// How long what one stage makes for another travels between two ranks: values forwards, their gradients back.
struct EdgeCost {
  StageEdge edge;
  double forward = 0, backward = 0;
};

/// How long the actions of a schedule take, and what crosses between ranks.
struct ScheduleCosts {
  std::vector<StageCost> stages;  ///< one for each stage; one alone is every stage's; none: F = I = W = 1, B = 2
  double transfer = 0;          ///< from the end of a stage to its arrival on another rank; the rank computes meanwhile
  std::vector<EdgeCost> edges;  ///< the same by edge; what is not named here takes `transfer`
  std::string unit;             ///< of all times, for display: "ms"
  bool overlapHides = false;    ///< an overlap takes as long as its longest part, not as all of them
};

/// Reads {"unit": "ms", "transfer": 0.1, "edges": [{"source": 0, "destination": 1, "F": 0.1, "B": 0.1}, ...],
/// "overlap_hides": false, "stages": [{"F": 1, "B": 2, "I": 1, "W": 1, "activation_bytes": 4096}, ...]}; what is not
/// given is as in ScheduleCosts, but without "B" it is I + W, and without both I and W each is half of B. Throws
/// Error(badInput).
ScheduleCosts readScheduleCosts(std::string_view json, const std::string& name);

/// One action at its time; an overlap is listed as its parts.
struct TimedAction {
  Action action;
  double start = 0, end = 0;
  bool overlapped = false;
  std::size_t position = 0;  ///< in the rank's row
};

/// What one rank does when, and what it holds.
struct RankTimeline {
  std::vector<TimedAction> actions;
  double busy = 0;                ///< time that it computes
  std::int32_t peakInFlight = 0;  ///< most forwards, of all its stages, whose weight gradient was to come
  std::int64_t peakBytes = 0;     ///< of their activations
};

/// A schedule run on its costs: all ranks, and how much of their time is waiting.
struct Simulation {
  std::vector<RankTimeline> ranks;
  double makespan = 0;
  double bubble = 0;  ///< part of the ranks' time in which they wait: 1 - sum of busy / (ranks * makespan)
};

/// Runs the schedule on the costs: every rank in the order of its row, each action as soon as the one before is over
/// and what it needs is there. Throws as requireValid, and Error(badUse) for costs that do not fit.
Simulation simulate(const Schedule& schedule, const ScheduleCosts& costs = {});

}  // namespace retrograd
