#include "core/layout/layering.h"

#include <gtest/gtest.h>

#include <random>

namespace retrograd::layout {
namespace {

LayerGraph graphOf(std::int32_t nodes, std::vector<LayerGraph::Edge> edges) {
  LayerGraph graph;
  graph.nodes = nodes;
  graph.edges = std::move(edges);
  graph.width.assign(static_cast<std::size_t>(nodes), 80);
  graph.height.assign(static_cast<std::size_t>(nodes), 40);
  return graph;
}

std::vector<float> widths(const Layering& layering, float nodes = 80) {
  std::vector<float> width(static_cast<std::size_t>(layering.slots()), 6);
  std::fill_n(width.begin(), layering.nodes, nodes);
  return width;
}

LayerGraph random(std::int32_t nodes, int extra, unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<LayerGraph::Edge> edges;
  for (std::int32_t i = 1; i < nodes; ++i)
    edges.push_back({std::max(0, i - 1 - static_cast<std::int32_t>(draw() % 5)), i});
  for (int k = 0; k < extra; ++k) {
    const auto a = static_cast<std::int32_t>(draw() % static_cast<unsigned>(nodes - 1));
    edges.push_back({a, std::min(nodes - 1, a + 1 + static_cast<std::int32_t>(draw() % 20))});
  }
  return graphOf(nodes, std::move(edges));
}

TEST(Layering, everyEdgeGoesDown) {
  const auto graph = random(300, 150, 1);
  const auto layering = layer(graph);
  for (const auto& edge : graph.edges)
    EXPECT_LT(layering.row[static_cast<std::size_t>(edge.from)], layering.row[static_cast<std::size_t>(edge.to)]);
  std::size_t placed = 0;
  for (const auto& row : layering.rows) placed += row.size();
  EXPECT_EQ(placed, static_cast<std::size_t>(layering.slots()));
}

TEST(Layering, longEdgesPassEachRow) {
  const auto layering = layer(graphOf(4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}}));
  const auto path = layering.path(3);
  ASSERT_EQ(path.size(), 4u);
  EXPECT_TRUE(layering.isPassage(path[1]) && layering.isPassage(path[2]));
  EXPECT_EQ(layering.row[static_cast<std::size_t>(path[2])], 2);
}

TEST(Layering, sourcesAreNextToTheirReaders) {
  // 3 makes something for 4 only: it is not at the top.
  const auto layering = layer(graphOf(5, {{0, 1}, {1, 2}, {2, 4}, {3, 4}}));
  EXPECT_EQ(layering.row[3], 2);
}

TEST(Layering, portsHaveRowsOfTheirOwn) {
  auto graph = graphOf(5, {{0, 1}, {1, 2}, {2, 4}, {0, 3}});
  graph.topPort = graph.bottomPort = true;
  const auto layering = layer(graph);
  EXPECT_EQ(layering.rows.front().size(), 1u);
  for (auto slot : layering.rows.back()) EXPECT_TRUE(slot == 4 || layering.isPassage(slot));
}

TEST(Layering, crossingsAreCounted) {
  // Two nodes over two, crosswise, in an order that is given.
  const auto graph = graphOf(4, {{0, 3}, {1, 2}});
  EXPECT_EQ(quality(layeringFrom(graph, {0, 0, 1, 1}, {0, 1, 0, 1}, {{}, {}})).crossings, 1);
  EXPECT_EQ(quality(layeringFrom(graph, {0, 0, 1, 1}, {1, 0, 0, 1}, {{}, {}})).crossings, 0);
  EXPECT_EQ(quality(layer(graph)).crossings, 0) << "the order is found";
}

TEST(Layering, orderingHelps) {
  const auto graph = random(200, 60, 7);
  const auto layering = layer(graph);
  std::vector<float> x(200);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const auto unordered = layeringFrom(graph, {layering.row.begin(), layering.row.begin() + 200}, x,
                                      std::vector<std::vector<float>>(graph.edges.size()));
  EXPECT_LT(quality(layering).crossings * 2, quality(unordered).crossings);
}

TEST(Layering, nothingOverlaps) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto layering = layer(random(120, 80, seed));
    const auto width = widths(layering);
    const auto x = placeSlots(layering, width, 28);
    for (const auto& row : layering.rows)
      for (std::size_t i = 1; i < row.size(); ++i) {
        const auto a = static_cast<std::size_t>(row[i - 1]), b = static_cast<std::size_t>(row[i]);
        EXPECT_GE(x[b] - x[a] + 0.01f, (width[a] + width[b]) / 2) << "slots " << a << " and " << b << ", seed " << seed;
      }
  }
}

TEST(Layering, aChainIsStraight) {
  std::vector<LayerGraph::Edge> edges;
  for (std::int32_t i = 1; i < 50; ++i) edges.push_back({i - 1, i});
  edges.push_back({0, 49});
  const auto layering = layer(graphOf(50, edges));
  const auto x = placeSlots(layering, widths(layering), 28);
  for (std::size_t i = 2; i < 49; ++i) EXPECT_FLOAT_EQ(x[i], x[1]);
  const auto path = layering.path(edges.size() - 1);
  for (std::size_t k = 2; k + 1 < path.size(); ++k)
    EXPECT_FLOAT_EQ(x[static_cast<std::size_t>(path[k])], x[static_cast<std::size_t>(path[1])])
        << "the long edge runs straight";
}

TEST(Layering, aHundredThousandNodesDoNoHarm) {
  const auto graph = random(100'000, 30'000, 3);
  const auto layering = layer(graph);
  EXPECT_EQ(layering.nodes, 100'000);
  EXPECT_LT(static_cast<double>(quality(layering).span) / static_cast<double>(graph.edges.size()), 8.0);
}

TEST(Layering, stopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(layer(random(2'000, 2'000, 5), Progress(stop.get_token(), {})), Error);
}

}  // namespace
}  // namespace retrograd::layout
