#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/formats/jobs/job_log.h"
#include "core/trace/diff/trace_diff.h"

namespace retrograd {

/// A graph of a compile as one pass of torch.compile left it.
struct JobPass {
  std::string name;                   ///< "joint", "post-grad", "post-grad (backward)"
  std::size_t graph = 0;              ///< into the attempt's graphs
  std::optional<std::size_t> before;  ///< the graph that the pass was given, into JobPasses::passes; none for the first
  std::shared_ptr<const Analysis> analysis;  ///< the graph as a computation, whose calls of functions and methods are
                                             ///< opaque; null where it cannot be read
  std::string problem;                       ///< why it cannot be read
  bool isOfOps = false;                      ///< by its kind: of ops; graphs of Dynamo call functions of Python
  std::shared_ptr<const TraceDiff> diff;     ///< from `before` to this; null where one of them is missing

  const Trace& trace() const { return analysis->computation().trace; }
};

/// The graphs of a compile in the order of its passes: Dynamo's, before and after pre-grad passes, joint, forward with
/// what Inductor's passes make of it, and the same of the backward; then the graphs of other records, each compared
/// with the one before it in the log. Repro scripts are left out.
struct JobPasses {
  std::string compile;
  std::vector<JobPass> passes;

  /// The pass of this name; the beginning of a name is enough. Throws Error(badUse) listing the passes where there is
  /// none.
  std::size_t find(std::string_view name) const;
};

/// Reads the graphs of an attempt and compares each with the one before. `toRun`: with ops of prims as the ATen ops
/// that do the same. Throws Error(badUse) where it has none, Error(cancelled).
JobPasses jobPasses(const jobs::JobLog& log, const jobs::GraphChoice& choice, const Progress& progress = {},
                    bool toRun = false);

/// What became of an op in another pass.
struct FollowedOp {
  enum class State : std::uint8_t {
    absent,    ///< not there: it came later, was dropped earlier, or belongs to the other half
    same,      ///< there, with the same call
    changed,   ///< there, with other arguments or results
    replaced,  ///< by another op, or by ops from the same line of Python
    gone       ///< dropped by this pass
  };
  State state = State::absent;
  std::vector<BoundSymbolId>
      ops;  ///< in this pass: the op, or those that replace it, of which the first is followed on
};
std::string_view name(FollowedOp::State state);

/// Follows an op of one pass to all others, by pass.
std::vector<FollowedOp> followOp(const JobPasses& passes, std::size_t pass, BoundSymbolId op);

}  // namespace retrograd
