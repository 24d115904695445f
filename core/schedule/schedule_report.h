#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/schedule/schedule_simulation.h"

namespace retrograd {

/// Figures of a run, one row a rank, and the order of each rank.
std::string scheduleText(const Schedule& schedule, const Simulation& run, const ScheduleCosts& costs = {});

/// The document of `retrograd pipeline schedule --format json` (docs/schedule.schema.json).
nlohmann::ordered_json scheduleJson(const Schedule& schedule, const Simulation& run, const ScheduleCosts& costs = {});

/// A drawing of the run: a row for each rank, time to the right. Each action is coloured and labelled with kind and
/// microbatch, under it its stage where ranks have several; what waits is hatched; a frame joins what overlaps. Each
/// mark has its action and times as a tooltip.
std::string scheduleSvg(const Schedule& schedule, const Simulation& run, const ScheduleCosts& costs = {});

/// The schedule as CSV with, before each action, an empty cell for each unit of time that the rank waits in a run with
/// F = I = W = 1, B = 2; rows that end earlier wait until the last action starts. The form of PyTorch's visualiser.
std::string writeSpacedScheduleCsv(const Schedule& schedule);

}  // namespace retrograd
