#pragma once
#include "core/formats/jobs/job_graphs.h"
#include "core/trace/symbol.h"

namespace retrograd {

/// Ops that run with a state of the generator as plain ops: `run_and_save_rng_state(OP, x)`, `run_with_rng_state(STATE,
/// OP, x)` and `graphsafe_run_with_rng_state(OP, x, rng_state=STATE)` become OP(x). The saved states have no meaning
/// any more; where one is returned, None is.
void drawPlainly(fx::Graph& forward);

/// Ties the draws of the backward to those of the forward where the graphs say that they are the same: the backward
/// runs the forward's op on the forward's operands from the state that the forward saved (`run_with_rng_state`) or left
/// in the generator that both have (`graphsafe_run_with_rng_state`), or `prims.inductor_random` reads a seed of the
/// forward. Such a draw becomes a value that is given (JobGraphs::shared), an output of the forward. Any other draw of
/// the backward is a draw of its own (JobGraphs::ownDraws); names tie nothing. Where Inductor draws in float32 what the
/// joint graph draws in float64, the joint graph draws in float32 too, and casts. Includes drawPlainly(). The graphs
/// are paired. `lookup` says which ops draw.
void tieDraws(JobGraphs& graphs, const SymbolLookup& lookup);

/// The draws of a graph's first `nodes` nodes, in order: "rand [4, 5]". Two graphs of the same draws draw the same
/// numbers from one seed.
std::vector<std::string> drawsOf(const fx::Graph& graph, std::size_t nodes, const SymbolLookup& lookup);

}  // namespace retrograd
