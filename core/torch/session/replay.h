#pragma once
// Whether a recorded step gives the recorded bits when it runs again.
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/analysis.h"
#include "core/judge/claim.h"

namespace retrograd {

class RunFollower;

/// A result that is not the recorded one.
struct ReplayDifference {
  BoundSymbolId op;
  ValueId value;
  std::string cause;  ///< for people
};

/// What running a recorded step again found.
struct ReplayResult {
  std::size_t ops = 0;                  ///< of the recording
  std::size_t ran = 0;                  ///< of these: that LibTorch ran again
  std::size_t compared = 0;             ///< hashes
  std::size_t differing = 0;            ///< of these
  std::size_t afterUninitialized = 0;   ///< differing ones that read memory which nobody had written
  std::vector<ReplayDifference> first;  ///< of those that differ, in order; the first few
  std::vector<BoundSymbolId> notRun;    ///< that nobody can run: their values are the recorded ones
  std::string stopped;                  ///< the error of the op that could not run; empty: all ran
  BoundSymbolId stoppedAt;
  std::vector<std::string> notComparable;          ///< why hashes of this machine need not be those of the recorder's
  std::map<std::string, std::size_t> notCompared;  ///< results without a hash to compare: how many, by the reason
  std::vector<Claim> unhealthy;  ///< NaN, or what nobody wrote, where it reaches the loss, a gradient, a weight; zeros
};

/// Runs the recorded step again from its inputs, op by op, and compares each hash. Numbers that are not finite are
/// looked for in losses, in gradients that an optimizer reads, and in parameters and buffers. Throws Error(cancelled).
/// `beside`: hear of the run too.
ReplayResult replay(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {},
                    const std::vector<RunFollower*>& beside = {});

}  // namespace retrograd
