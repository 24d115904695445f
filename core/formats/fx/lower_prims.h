#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::fx {

/// A graph without calls of `prims`, and how its values match those of the graph that it was made of.
struct Lowered {
  Graph graph;
  std::vector<std::size_t> values;   ///< by value of the given graph: the value that it became
  std::vector<std::size_t> origins;  ///< by node: the node of the given graph that it is of
};

/// The graph with calls of `prims` said in `aten` ops: LibTorch has no `prims`, they are made in Python. Any other call
/// stays as it is. A call that takes several ops becomes several nodes; the last one has its name, type and line.
/// Inductor's draws become those of LibTorch's generator, without a seed of their own. Follows
/// torch/_inductor/inductor_prims.py and torch/_prims of PyTorch 2.6 to 2.15. Linear. Throws Error(badInput) naming
/// node and line for a call that cannot be said, such as a range whose length is not a number.
Lowered withoutPrims(const Graph& graph);

/// Whether withoutPrims() knows this op of `prims` ("prims.iota.default").
bool isLoweredPrim(std::string_view op);

}  // namespace retrograd::fx
