#include "core/layout/layout_report.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/layout/dot_client.h"

namespace retrograd::layout {
namespace {

double lengthOf(std::span<const Point> path) {
  double length = 0;
  for (std::size_t i = 1; i < path.size(); ++i)
    length += std::hypot(path[i].x - path[i - 1].x, path[i].y - path[i - 1].y);
  return length;
}

/// Pairs of lines across the ladder of which one begins above the other and ends below it.
std::int64_t crossingsAcross(const Scene& scene) {
  std::vector<std::pair<float, float>> lines;
  for (auto i : scene.crossEdges)
    if (const auto& edge = scene.edges[i]; edge.kind == EdgeKind::saved)
      lines.emplace_back(scene.path(edge).front().y, scene.path(edge).back().y);
  std::sort(lines.begin(), lines.end());
  // Inversions of the ends, while these are sorted into place.
  std::int64_t crossings = 0;
  std::vector<float> ends;
  for (std::size_t i = 0; i < lines.size();) {
    auto next = i;
    for (; next < lines.size() && lines[next].first == lines[i].first; ++next)  // those from one place do not cross
      crossings += ends.end() - std::upper_bound(ends.begin(), ends.end(), lines[next].second);
    for (; i < next; ++i) ends.insert(std::upper_bound(ends.begin(), ends.end(), lines[i].second), lines[i].second);
  }
  return crossings;
}

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

LayoutReport reportLayout(const Document& document, const Trace& trace, const Computation* computation, bool allOpen,
                          const Progress& progress) {
  LayoutReport report;
  auto begin = std::chrono::steady_clock::now();
  auto tree = std::make_shared<const GraphTree>(buildTree(document, trace, computation, progress));
  report.treeSeconds = secondsSince(begin);
  begin = std::chrono::steady_clock::now();
  DotClient dot;
  Shaper shaper(tree, [&dot](const LayerGraph& graph, const Progress& p) { return bestLayering(dot, graph, p); });
  const auto scene = makeScene(shaper, allOpen ? layout::allOpen(*tree) : openingFolds(*tree), progress);
  report.layoutSeconds = secondsSince(begin);
  const auto quality = shaper.quality(scene.open);
  report.crossings = quality.crossings;
  report.edges = quality.edges;
  report.rows = quality.span;
  report.savedCrossings = crossingsAcross(scene);
  for (const auto& box : scene.boxes) report.boxes += !box.open;
  for (const auto& edge : scene.edges) {
    if (edge.kind == EdgeKind::origin) continue;
    ++report.lines;
    const auto length = lengthOf(scene.path(edge));
    (edge.kind == EdgeKind::saved ? report.savedLength : report.flowLength) += length;
    if (edge.kind != EdgeKind::saved) report.longestFlow = std::max(report.longestFlow, length);
  }
  return report;
}

nlohmann::ordered_json toJson(const LayoutReport& report) {
  return {{"boxes", report.boxes},
          {"lines", report.lines},
          {"crossings", report.crossings},
          {"saved_crossings", report.savedCrossings},
          {"edges", report.edges},
          {"rows", report.rows},
          {"flow_length", report.flowLength},
          {"longest_flow", report.longestFlow},
          {"saved_length", report.savedLength},
          {"tree_seconds", report.treeSeconds},
          {"layout_seconds", report.layoutSeconds}};
}

}  // namespace retrograd::layout
