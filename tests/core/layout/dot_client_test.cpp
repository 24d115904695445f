#include "core/layout/dot_client.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
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

TEST(DotClient, asksTheHelperNextToTheProgram) {
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

TEST(DotClient, missingGarbledAndHangingHelpersDoNoHarm) {
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

/// Edges that cross and reach far: `nodes` in a chain, each also fed by one from anywhere before it.
LayerGraph tangle(std::int32_t nodes) {
  LayerGraph graph;
  graph.nodes = nodes;
  graph.width.assign(static_cast<std::size_t>(nodes), 80);
  graph.height.assign(static_cast<std::size_t>(nodes), 40);
  for (std::int32_t i = 1; i < nodes; ++i) {
    graph.edges.push_back({i - 1, i});
    if (i > 2) graph.edges.push_back({static_cast<std::int32_t>((static_cast<std::int64_t>(i) * 7919) % (i - 1)), i});
  }
  return graph;
}

/// The first line that a helper is sent for a graph, by a stand-in that writes it to a file.
std::string requestFor(std::int32_t nodes) {
  const auto sent = std::filesystem::temp_directory_path() / ("retrograd-sent" + std::to_string(getpid()));
  const auto recorder = script("recorder", "read line; echo \"$line\" > " + sent.string());
  DotClient dot(recorder);
  EXPECT_FALSE(dot(tangle(nodes)));
  std::string line;
  std::getline(std::ifstream(sent) >> std::ws, line);
  std::filesystem::remove(sent);
  std::filesystem::remove(recorder);
  return line;
}

TEST(DotEffort, eachTierIsAskedForLess) {
  EXPECT_TRUE(requestFor(300).ends_with(" full"));
  EXPECT_TRUE(requestFor(301).ends_with(" reduced"));
  EXPECT_TRUE(requestFor(2000).ends_with(" reduced"));
  EXPECT_EQ(requestFor(2001), "") << "no helper was started";
}

/// What progress hears while a helper does not answer.
std::set<std::string> toldFor(std::int32_t nodes) {
  const auto hanging = script("silent", "sleep 60");
  DotClient dot(hanging);
  dot.setLimit(std::chrono::milliseconds(150));
  std::set<std::string> told;
  double last = 0;
  EXPECT_FALSE(dot(tangle(nodes), Progress({}, [&](std::string_view stage, double fraction) {
                     told.emplace(stage);
                     EXPECT_GE(fraction, last);
                     EXPECT_LE(fraction, 1);
                     last = fraction;
                   })));
  EXPECT_TRUE(told.empty() || last > 0.5) << "up to the limit";
  std::filesystem::remove(hanging);
  return told;
}

TEST(DotEffort, whatTakesSecondsIsReported) {
  EXPECT_EQ(toldFor(1000), std::set<std::string>{});
  EXPECT_EQ(toldFor(1001), std::set<std::string>{"dot: 1001 boxes"});
}

TEST(DotEffort, theLimitIsFiveSeconds) {
  const auto hanging = script("endless", "sleep 60");
  DotClient dot(hanging);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(dot(tangle(1500)));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(took, std::chrono::milliseconds(4'900));
  EXPECT_LT(took, std::chrono::seconds(8));
  EXPECT_EQ(dot.process(), -1);
  std::filesystem::remove(hanging);
}

/// Seconds of processor time that a process has used; other work on the machine does not count.
double processorTime(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string field;
  double ticks = 0;
  for (int i = 1; i <= 15 && stat >> field; ++i)
    if (i >= 14) ticks += std::stod(field);  // utime, stime; the name, field 2, has no space
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

TEST(DotHelper, longEdgesDoNotHoldItUp) {
  // Coordinates are not asked for: with them dot takes this graph longer than its limit of 5 seconds, without a fifth
  // of that.
  DotClient dot;
  dot.setLimit(std::chrono::minutes(1));
  EXPECT_TRUE(dot(tangle(220)));
  ASSERT_GE(dot.process(), 0);
  const double took = processorTime(dot.process());
  EXPECT_GT(took, 0);
  EXPECT_LT(took, 4);
}

/// The helper's own reply to a tangle of two edges a node.
std::string answerTo(const std::string& effort, std::int32_t nodes) {
  std::mt19937 random(static_cast<unsigned>(nodes));
  std::string lines;
  for (std::int32_t i = 0; i < nodes; ++i) lines += "n 80 40\n";
  for (std::int32_t i = 1; i < nodes; ++i)
    for (int k = 0; k < 2; ++k)
      lines += "e " +
               std::to_string(i - 1 - static_cast<std::int32_t>(random() % static_cast<unsigned>(std::min(i, 60)))) +
               " " + std::to_string(i) + "\n";
  const auto file = std::filesystem::temp_directory_path() / ("retrograd-request" + std::to_string(getpid()));
  std::ofstream(file) << "layout " << nodes << " " << 2 * (nodes - 1) << " " << effort << "\n" << lines << "end\n";
  std::string answer;
  auto* pipe = popen((layoutHelper() + " < " + file.string()).c_str(), "r");
  for (int c = 0; (c = fgetc(pipe)) != EOF;) answer += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  std::filesystem::remove(file);
  return answer;
}

TEST(DotHelper, doesTheLesserEffort) {
  ASSERT_FALSE(layoutHelper().empty());
  int differ = 0;
  for (std::int32_t nodes = 100; nodes <= 200; nodes += 10) {
    const auto full = answerTo("full", nodes), reduced = answerTo("reduced", nodes);
    EXPECT_TRUE(full.ends_with("end\n"));
    EXPECT_TRUE(reduced.ends_with("end\n"));
    differ += full != reduced;
  }
  EXPECT_GT(differ, 0) << "more rounds leave another order";
  EXPECT_EQ(answerTo("most", 100), "") << "an effort that is none ends it";
}

TEST(DotHelper, hasAGigabyteAndDiesOfMore) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "under the sanitizer it has no limit";
#endif
#endif
  DotClient dot;
  ASSERT_TRUE(dot(diamond()));
  rlimit limit{};
  ASSERT_EQ(prlimit(dot.process(), RLIMIT_AS, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, 1ull << 30);
  EXPECT_EQ(limit.rlim_max, 1ull << 30) << "it cannot take more";
  // With less, for a gigabyte takes a while to fill: the program goes on without that graph.
  const rlimit little{24u << 20, 24u << 20};
  ASSERT_EQ(prlimit(dot.process(), RLIMIT_AS, &little, nullptr), 0);
  const auto process = dot.process();
  EXPECT_FALSE(dot(tangle(1000)));
  EXPECT_EQ(dot.process(), -1);
  EXPECT_EQ(kill(process, 0), -1) << "it is gone";
  EXPECT_TRUE(dot(diamond()));
}

TEST(DotHelper, isKilledInTheMiddleOfAGraph) {
  DotClient dot;
  ASSERT_TRUE(dot(diamond()));
  const auto process = dot.process();
  std::stop_source stop;
  // As soon as it is known that dot works on it.
  const Progress progress(stop.get_token(), [&](std::string_view, double fraction) {
    if (fraction > 0.02) stop.request_stop();
  });
  EXPECT_THROW(dot(tangle(2000), progress), Error);
  EXPECT_EQ(dot.process(), -1);
  EXPECT_EQ(kill(process, 0), -1);
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
