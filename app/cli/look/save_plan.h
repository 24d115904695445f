#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/formats/jobs/job_log.h"

namespace retrograd::cli {

struct SavePlanOptions {
  std::string compile;  ///< "0/0"; empty: the first with a forward and a backward graph
  std::optional<std::int64_t> rank;
  std::string format = "text";
  bool withNodes = false;  ///< every tensor of the forward too, with its policy and what happened
  int budgets = 0;         ///< at how many budgets Retrograd splits the job's model itself
};

/// Prints what the forward of a compile saves for its backward. Throws Error(badUse) where there is no such compile,
/// Error(badInput) where it lacks a graph, and as open() where budgets are asked for.
void printSavePlan(const jobs::JobLog& log, const SavePlanOptions& options, const Progress& progress);

}  // namespace retrograd::cli
