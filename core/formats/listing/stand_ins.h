#pragma once
#include <string>
#include <vector>

#include "core/formats/fx/fx_graph.h"
#include "core/trace/symbol.h"

namespace retrograd::jobs {

/// A call of an op that LibTorch does not have and that no rule says in its ops: a Triton kernel, flex attention, a
/// custom op, a collective.
struct OpaqueCall {
  std::string name;                  ///< of its node: "flex_attention"
  std::string op;                    ///< "higher_order.flex_attention"
  std::string arguments;             ///< all but the names of the values that it reads, with the bodies it is given
  std::vector<std::string> results;  ///< the tensors that it gives, by the names of their nodes
  std::size_t node = 0;              ///< in the graph
  bool writes = false;               ///< it may write to its operands, which no value of the graph shows
};

/// The opaque calls of a graph, in its order.
std::vector<OpaqueCall> opaqueCalls(const fx::Graph& graph, const SymbolLookup& lookup);

/// A graph that runs without its opaque calls.
struct StoodIn {
  fx::Graph graph;
  std::vector<std::size_t> values;   ///< by value of the given graph: the value that it became
  std::vector<std::size_t> origins;  ///< by node: the node of the given graph that it is of
  std::vector<std::size_t> inputs;   ///< the inputs that were added, behind those of the given graph
};

/// Takes a stand-in for what each opaque call computes: an arbitrary smooth function of all tensors that it reads, the
/// same wherever a call has the same name. Its coefficients are inputs that are added to the graph. Graphs that are the
/// same computation stay so whatever the function is: what differs between them shows, whether it is before or behind
/// the call. A result in `given` becomes an input of its name instead, and so does one that is no floating tensor, or
/// of a call that reads none. Linear.
StoodIn withStandIns(const fx::Graph& graph, const SymbolLookup& lookup, const std::vector<std::string>& given);

}  // namespace retrograd::jobs
