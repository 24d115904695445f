#pragma once
#include <cstddef>
#include <vector>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::jobs {

/// A sequence of nodes that a graph repeats: equal ops of equal lines of Python with results of equal types. Arithmetic
/// of sizes is left out: the first layer does it for all.
struct LayerGroup {
  std::vector<std::vector<std::size_t>>
      layers;  ///< nodes of each layer, in order: two layers at least, with as many nodes each
};

/// The equal layers among the first `count` nodes of a graph, largest groups first. Each layer reads an input of the
/// graph, as parameters are; shorter repetitions within a layer are not layers. Checkpoint tags do not matter. Costs a
/// few hundred passes over the nodes.
std::vector<LayerGroup> equalLayers(const fx::Graph& graph, std::size_t count);

}  // namespace retrograd::jobs
