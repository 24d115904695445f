#pragma once
#include <cstdint>
#include <vector>

namespace retrograd {

/// Capacities are products of bytes and costs: 64 bits would overflow.
__extension__ using Capacity = __int128;

/// Maximum flow by Dinic's algorithm, without recursion: O(V^2 E), on traces some five phases.
class FlowNetwork {
 public:
  static constexpr Capacity infinite = static_cast<Capacity>(1) << 120;

  explicit FlowNetwork(std::int32_t nodes) : first_(nodes, -1) {}

  std::int32_t addNode();
  /// Returns the edge's number.
  std::int32_t addEdge(std::int32_t from, std::int32_t to, Capacity capacity);
  void setCapacity(std::int32_t edge, Capacity capacity) { edges_[edge].given = capacity; }

  /// Sends all it can. Afterwards the nodes that can still reach `sink` form the smallest sink side of all minimum
  /// cuts.
  std::vector<char> sinkSide(std::int32_t source, std::int32_t sink);

  std::int32_t nodeCount() const { return static_cast<std::int32_t>(first_.size()); }
  std::int32_t edgeCount() const { return static_cast<std::int32_t>(edges_.size()) / 2; }
  std::int32_t from(std::int32_t edge) const { return edges_[edge ^ 1].to; }
  std::int32_t to(std::int32_t edge) const { return edges_[edge].to; }

 private:
  struct Edge {
    std::int32_t to, next;
    Capacity given, left;
  };
  bool findLevels(std::int32_t source, std::int32_t sink);
  void sendAlongLevels(std::int32_t source, std::int32_t sink);

  std::vector<std::int32_t> first_;  // by node: its newest edge
  std::vector<Edge> edges_;          // edge and its reverse side by side
  std::vector<std::int32_t> level_, current_;
};

}  // namespace retrograd
