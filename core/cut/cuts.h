#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/trace/trace.h"

namespace retrograd {

/// Where the stages of a pipeline begin: positions in the computation's top-level ops, in ascending order. The first
/// stage needs none. Cuts that leave a stage without an op (two in a row, one before the first op or behind the last)
/// count for nothing.
using Cuts = std::vector<std::size_t>;

/// `torch.distributed.pipelining.pipe_split()` leaves this op in a graph. It computes nothing.
bool isStageMarker(const Document& document, BoundSymbolId op);

/// The cuts that the file's own markers ask for. A marker inside a region (a branch, a no_grad block) is an
/// Error(badUse), for a region is never cut.
Cuts markedCuts(const Document& document, const Computation& computation);

/// Which call of its modules an op belongs to: by op name in the file, the number of the call ("l" called a second
/// time: 1) for each path on its stack of modules. If a file does not say, the order of ops decides: a module
/// left and entered again is a new call.
using ModuleCalls = std::map<std::string, std::map<std::string, int>>;

/// Cuts at points of the user's: `MODULE[:before|after]` cuts at each call of the module of that path,
/// `#OP[:before|after]` at one op, by its name in the file or that of its output; before where nothing is said. Throws
/// Error(badUse) that names what is not there.
Cuts cutsAt(const Document& document, const Computation& computation, const std::vector<std::string>& points,
            const ModuleCalls& calls = {});

/// The points by which cutsAt() finds the places of a computation.
class PointNames {
 public:
  PointNames() = default;
  PointNames(const Document& document, const Computation& computation);
  /// For 0 < position < ops: "#relu_4", or the op before it with ":after". Throws Error(badUse) where neither op has a
  /// name of its own.
  std::string at(std::size_t position) const;

 private:
  std::vector<std::string> names_;  ///< by op; empty where the name is none, or another's too
};

/// The op at which a cut or a split was refused: the first that place or message of the error name as "#NAME"; none
/// where they name none.
BoundSymbolId refusedOp(const Document& document, const Computation& computation, const Error& error);

}  // namespace retrograd
