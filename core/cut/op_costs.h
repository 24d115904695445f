#pragma once
#include <functional>
#include <vector>

#include "core/cut/cut_request.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// What each top-level op of a computation costs, by position: all that was derived from it in forward and in backward
/// (recomputation and sums of gradients included).
struct OpCosts {
  std::vector<double> forward, backward;

  explicit OpCosts(std::size_t ops = 0) : forward(ops, 0.0), backward(ops, 0.0) {}
  std::vector<double> total() const;
  bool empty() const { return forward.empty(); }
};

/// Adds what each op of forward and backward costs to the op of the computation that it comes from. `costOf` is given
/// the op's position in the program (forward's ops, then backward's) and the op.
OpCosts costsByOrigin(const Analysis& whole,
                      const std::function<double(std::size_t position, BoundSymbolId op)>& costOf);

/// From the traces alone, in the units of opCost(): only meant to compare.
OpCosts estimatedCosts(const Analysis& whole);

/// What a policy that needs no run balances, by position. `whole` is for Balance::estimate. Throws Error(internal) for
/// Balance::time.
std::vector<double> balanceCosts(const ModelFile& model, const Analysis* whole, Balance balance);

}  // namespace retrograd
