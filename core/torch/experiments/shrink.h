#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// Whether a fault shows in a range of ops as a model of its own (extractOps()). Throws as running it does;
/// Error(cancelled).
using FaultTest = std::function<bool(const std::shared_ptr<const Analysis>& candidate)>;

/// A NaN among the outputs of the range, or among its gradients where the outputs have none, though none flows in.
FaultTest holdsNaN();
/// A largest difference of an output or gradient to the same in double precision, relative to its largest element,
/// beyond `tolerance`.
FaultTest differsFromDouble(double tolerance);
/// Values that the range makes differ from the tensors of these names by more than `tolerance`, relative to the largest
/// element: what another run of the same graph has made. Values without a tensor are not compared.
FaultTest differsFrom(TensorMap reference, double tolerance);

struct Shrunk {
  std::vector<BoundSymbolId> ops;             ///< of the analysis' computation, one after another
  std::shared_ptr<const Analysis> candidate;  ///< the range as a model of its own, derived
  std::size_t tests = 0;                      ///< how often the fault was looked for
};

/// Finds a range of the computation's ops, one after another, that still shows the fault: cuts at the end and at the
/// beginning by halves, then tries every shorter range within what is left, shortest first, as far as `mostTests`
/// allow. What flows into a range are the values of a run of the whole. Where the fault needs ops far apart, the range
/// reaches over all between them. Throws Error(badUse) where the whole does not show the fault; as extractOps() and
/// analyse().
Shrunk shrink(const Analysis& analysis, const FaultTest& shows, std::size_t mostTests = 400,
              const Progress& progress = {});

}  // namespace retrograd
