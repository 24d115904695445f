#pragma once
#include <set>
#include <string>
#include <vector>

#include "core/formats/jobs/job_graphs.h"
#include "core/torch/opinion/second_opinion.h"

namespace retrograd {

/// Calls of a compile's forward and backward that cannot run here (jobs::opaqueCalls()).
struct OpaqueOps {
  std::vector<std::string> calls;  ///< "higher_order.flex_attention (flex_attention, line 70 of the forward graph)"
  std::set<std::string> results;   ///< the tensors that they give, by the names of their nodes
};

/// Finds them, and whether a stand-in can take their place: each is the same call in all graphs that have it. Throws
/// NotPossible for one that may write to its operands, one that the joint graph lacks, and one whose arguments differ.
OpaqueOps opaqueOps(const JobGraphs& graphs);

/// Throws Error(badUse) for what is filled in and is not a result of theirs.
void requireResults(const OpaqueOps& ops, const TensorMap& filled);

}  // namespace retrograd
