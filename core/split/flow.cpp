#include "core/split/flow.h"

#include <algorithm>

namespace retrograd {

std::int32_t FlowNetwork::addNode() {
  first_.push_back(-1);
  return nodeCount() - 1;
}

std::int32_t FlowNetwork::addEdge(std::int32_t from, std::int32_t to, Capacity capacity) {
  const auto edge = static_cast<std::int32_t>(edges_.size());
  edges_.push_back({to, first_[from], capacity, 0});
  first_[from] = edge;
  edges_.push_back({from, first_[to], 0, 0});
  first_[to] = edge + 1;
  return edge;
}

bool FlowNetwork::findLevels(std::int32_t source, std::int32_t sink) {
  level_.assign(first_.size(), -1);
  level_[source] = 0;
  std::vector<std::int32_t> queue{source};
  for (std::size_t k = 0; k < queue.size(); ++k)
    for (auto e = first_[queue[k]]; e >= 0; e = edges_[e].next) {
      const auto& edge = edges_[e];
      if (edge.left == 0 || level_[edge.to] >= 0) continue;
      level_[edge.to] = level_[queue[k]] + 1;
      queue.push_back(edge.to);
    }
  return level_[sink] >= 0;
}

void FlowNetwork::sendAlongLevels(std::int32_t source, std::int32_t sink) {
  current_ = first_;
  std::vector<std::int32_t> path;  // edges from the source to `node`
  auto node = source;
  for (;;) {
    if (node == sink) {
      auto amount = infinite;
      for (auto e : path) amount = std::min(amount, edges_[e].left);
      std::size_t firstFull = path.size();
      for (std::size_t k = path.size(); k-- > 0;) {
        auto& edge = edges_[path[k]];
        edge.left -= amount;
        edges_[path[k] ^ 1].left += amount;
        if (edge.left == 0) firstFull = k;
      }
      node = from(path[firstFull]);  // all that is still open before the first full edge serves the next path
      path.resize(firstFull);
      continue;
    }
    auto& e = current_[node];
    while (e >= 0) {
      const auto& edge = edges_[e];
      if (edge.left > 0 && level_[edge.to] == level_[node] + 1) break;
      e = edge.next;
    }
    if (e >= 0) {
      path.push_back(e);
      node = to(e);
    } else if (path.empty()) {
      return;
    } else {  // a dead end: no other path comes through here
      level_[node] = -1;
      node = from(path.back());
      path.pop_back();
    }
  }
}

std::vector<char> FlowNetwork::sinkSide(std::int32_t source, std::int32_t sink) {
  for (auto& edge : edges_) edge.left = edge.given;
  while (findLevels(source, sink)) sendAlongLevels(source, sink);
  std::vector<char> reaches(first_.size(), 0);
  reaches[sink] = 1;
  std::vector<std::int32_t> stack{sink};
  while (!stack.empty()) {
    const auto node = stack.back();
    stack.pop_back();
    for (auto e = first_[node]; e >= 0; e = edges_[e].next) {
      const auto other = edges_[e].to;
      if (reaches[other] || edges_[e ^ 1].left == 0) continue;
      reaches[other] = 1;
      stack.push_back(other);
    }
  }
  return reaches;
}

}  // namespace retrograd
