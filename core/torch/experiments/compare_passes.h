#pragma once
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/torch/reading/job_passes.h"

namespace retrograd {

/// What a pass of a compile did to the numbers.
struct PassComparison {
  std::size_t pass = 0;  ///< into JobPasses::passes
  Report report;         ///< Claim::op is of the graph that the pass was given
};

/// Each graph of ATen ops against the one that its pass was given, op by op on what that one computes (OwnErrors): a
/// pass that drops a cast is to blame with op and line. `opened`: the same compile opened as a model, which has values
/// for the inputs; what it lacks is drawn. A pass whose graph cannot run here is in the list as not judged; graphs of
/// Dynamo, which call functions, are not. Throws Error(cancelled).
std::vector<PassComparison> comparePasses(const JobPasses& chain, const Analysis& opened,
                                          const Progress& progress = {});

}  // namespace retrograd
