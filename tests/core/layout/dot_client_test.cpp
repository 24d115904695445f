#include "core/layout/dot_client.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace retrograd::layout {
namespace {

LayerGraph diamond() {
  LayerGraph graph;
  graph.nodes = 5;
  graph.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {0, 4}};
  graph.width.assign(5, 80);
  graph.height.assign(5, 40);
  return graph;
}

/// A stand-in for the helper.
std::string script(const std::string& name, const std::string& body) {
  const auto path = std::filesystem::temp_directory_path() / ("retrograd-" + name + std::to_string(getpid()));
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(DotClient, asksTheHelperBesideTheProgram) {
  ASSERT_FALSE(layoutHelper().empty()) << "retrograd-layout is built beside the tests";
  DotClient dot;
  const auto layering = dot(diamond());
  ASSERT_TRUE(layering);
  EXPECT_EQ(layering->row[0], 0);
  EXPECT_EQ(layering->row[3], 2);
  EXPECT_EQ(layering->path(5).size(), 4u) << "the long edge passes two rows";
  EXPECT_EQ(quality(*layering).crossings, 0);
  const auto process = dot.process();
  ASSERT_TRUE(dot(diamond()));
  EXPECT_EQ(dot.process(), process) << "the helper stays for the next graph";
}

TEST(DotClient, portsKeepTheirRows) {
  DotClient dot;
  LayerGraph graph;
  graph.nodes = 6;
  graph.topPort = graph.bottomPort = true;
  graph.edges = {{0, 1}, {1, 2}, {3, 4}, {2, 5}};
  graph.width.assign(6, 80);
  graph.height.assign(6, 40);
  const auto layering = dot(graph);
  ASSERT_TRUE(layering);
  EXPECT_EQ(layering->rows.front(), std::vector<std::int32_t>{0});
  EXPECT_EQ(layering->row[5], static_cast<std::int32_t>(layering->rows.size()) - 1);
}

TEST(DotClient, aHelperThatDiesIsReplaced) {
  DotClient dot;
  ASSERT_TRUE(dot(diamond()));
  const auto process = dot.process();
  kill(process, SIGKILL);
  EXPECT_FALSE(dot(diamond())) << "that graph goes without";
  ASSERT_TRUE(dot(diamond()));
  EXPECT_NE(dot.process(), process);
}

TEST(DotClient, missingGarbledAndHangingHelpersAreNoTrouble) {
  DotClient none("/nowhere/retrograd-layout"), unnamed("");
  EXPECT_FALSE(none(diamond()));
  EXPECT_FALSE(unnamed(diamond()));
  const auto garbled = script("garbled", "read line; printf 'ok 5 6\\nn 99 0\\nend\\n'");
  DotClient wrong(garbled);
  EXPECT_FALSE(wrong(diamond()));
  const auto hanging = script("hanging", "sleep 60");
  DotClient slow(hanging);
  slow.setLimit(std::chrono::milliseconds(100));
  EXPECT_FALSE(slow(diamond()));
  EXPECT_EQ(slow.process(), -1) << "it was killed";
  std::filesystem::remove(garbled);
  std::filesystem::remove(hanging);
}

TEST(DotClient, isCancelledByKillingTheHelper) {
  const auto hanging = script("waiting", "sleep 60");
  DotClient dot(hanging);
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(dot(diamond(), Progress(stop.get_token(), {})), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  EXPECT_EQ(dot.process(), -1);
  std::filesystem::remove(hanging);
}

TEST(DotClient, neverAsksForMoreThanDotCanDo) {
  LayerGraph graph;
  graph.nodes = DotClient::mostNodes + 1;
  DotClient dot;
  EXPECT_FALSE(dot(graph));
  EXPECT_EQ(dot.process(), -1) << "no helper was started";
}

TEST(DotClient, theBetterLayoutWins) {
  DotClient dot;
  LayerGraph graph;
  graph.nodes = 40;
  for (std::int32_t i = 0; i < 39; ++i) graph.edges.push_back({i, i + 1});
  for (std::int32_t i = 0; i < 30; i += 3) graph.edges.push_back({i, i + 9}), graph.edges.push_back({i + 1, i + 5});
  graph.width.assign(40, 80);
  graph.height.assign(40, 40);
  const auto best = bestLayering(dot, graph, {});
  ASSERT_TRUE(best);
  EXPECT_LE(quality(*best).crossings, quality(layer(graph)).crossings);
}

}  // namespace
}  // namespace retrograd::layout
