#pragma once
#include "core/formats/jobs/autograd_cuts.h"
#include "core/formats/jobs/job_graphs.h"

namespace retrograd {

/// The forward that autograd differentiated: what a backward is derived from.
struct Differentiated {
  fx::Graph graph;       ///< inputs and results of the program are those of JobGraphs::forward, by position
  bool ofJoint = false;  ///< the ops of the joint graph before its backward; else the forward graph
  bool isKnown = true;   ///< false where the log has no Dynamo graph to say what autograd recorded
  jobs::AutogradCuts cuts;
  std::string place;
};

/// The forward graph, where the gradients of its ops are those of the program. Else the joint graph's ops before the
/// backward, of which each is there as the program ran it; a forward graph may have two of them merged. Without a joint
/// graph, and where it is not wanted, it is the forward graph all the same.
Differentiated differentiatedForward(const JobGraphs& graphs, bool takesJoint = true);

/// Whether the joint graph has the forward's inputs, in their order, and its results.
bool fitsJoint(const JobGraphs& graphs);

/// "a; b; and 3 more".
std::string shortList(const std::vector<std::string>& texts);

/// What people should know before they trust the gradients of this forward: what has a backward of its own, and what is
/// in doubt.
std::vector<std::string> warningsOf(const Differentiated& forward);

}  // namespace retrograd
