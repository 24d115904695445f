#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/progress.h"

namespace retrograd::layout {

/// The children of one group as a graph without cycles: every edge goes from a lower to a higher node.
/// With a port the first, or the last, node is where flows enter or leave the group; it has a row of its own.
struct LayerGraph {
  struct Edge {
    std::int32_t from = 0, to = 0;
  };
  std::int32_t nodes = 0;
  bool topPort = false, bottomPort = false;  ///< node 0 and node nodes - 1
  std::vector<float> width, height;          ///< by node, while closed
  std::vector<Edge> edges;
};

/// Rows of a layered drawing, and the order within each. An edge over several rows passes a slot in each of those
/// between. Slots [0, nodes) are the nodes; those from there on are passages.
struct Layering {
  std::int32_t nodes = 0;
  std::vector<std::int32_t> row;                        ///< by slot
  std::vector<std::vector<std::int32_t>> rows;          ///< slots from left to right
  std::vector<std::uint32_t> chainBegin;                ///< by edge, into `chain`
  std::vector<std::int32_t> chain;                      ///< slots from the edge's start to its end
  std::vector<std::vector<std::int32_t>> above, below;  ///< neighbours by slot

  std::int32_t slots() const { return static_cast<std::int32_t>(row.size()); }
  bool isPassage(std::int32_t slot) const { return slot >= nodes; }
  std::span<const std::int32_t> path(std::size_t edge) const {
    return {chain.data() + chainBegin[edge], chainBegin[edge + 1] - chainBegin[edge]};
  }
};

/// What a reader has to follow: crossings of edges, and rows that edges span beyond one.
struct LayerQuality {
  std::int64_t crossings = 0;
  std::int64_t span = 0;  ///< sum over edges of rows
  std::int64_t edges = 0;
  LayerQuality& operator+=(const LayerQuality& other) {
    crossings += other.crossings;
    span += other.span;
    edges += other.edges;
    return *this;
  }
};
LayerQuality quality(const Layering& layering);

/// Rows by longest path, what feeds only later rows pulled down to these; order by barycentre sweeps and, in small
/// graphs, exchanges of neighbours (Sugiyama, Tagawa and Toda 1981). For any size: 100,000 nodes take tens of
/// milliseconds. Throws Error(cancelled).
Layering layer(const LayerGraph& graph, const Progress& progress = {});

/// Rows are given, by node, and so are places within them: of nodes, and of each edge's passages from above to below.
/// As read from dot.
Layering layeringFrom(const LayerGraph& graph, std::vector<std::int32_t> rows, const std::vector<float>& x,
                      const std::vector<std::vector<float>>& passages);

/// Middles of all slots from left to right, by Brandes and Koepf's four alignments ("Fast and Simple Horizontal
/// Coordinate Assignment", 2001): long edges run straight. `width` is by slot; what is side by side keeps `gap`,
/// passages a third of it.
std::vector<float> placeSlots(const Layering& layering, const std::vector<float>& width, float gap);

}  // namespace retrograd::layout
