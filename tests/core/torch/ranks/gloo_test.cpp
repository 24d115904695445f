#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/base/error.h"
#include "core/ranks/executor.h"
#include "core/ranks/launch.h"
#include "core/ranks/traffic.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_lowering.h"
#include "tests/core/ranks/linear_stages.h"

// Ranks as processes of this machine: each test launches this program again, which then runs the disabled test below as
// a rank.
namespace retrograd {
namespace {

using namespace std::chrono_literals;
using test::LinearStages;

constexpr const char* scenarioVariable = "RETROGRAD_RANK_TEST";

std::string scenario() {
  const auto* value = std::getenv(scenarioVariable);
  return value ? value : "";
}

Schedule scheduleNamed(const std::string& name, int ranks) {
  auto schedule = makeSchedule(*findScheduleKind(name == "skip" ? "1F1B" : name), ranks, 2 * ranks);
  if (name == "skip") {
    schedule.edges = schedule.allEdges();
    schedule.edges.push_back({0, ranks - 1});
  }
  return lowerSchedule(schedule);
}

/// The link between ranks on the CPU: what NCCL's does between GPUs.
std::unique_ptr<DeviceLink> linkOf(Transport& transport, const Schedule& schedule) {
  auto [link, refusal] = transport.linkDevices(Device(), rankPairs(schedule));
  if (!link) throw Error(ErrorCode::internal, refusal);
  return std::move(link);
}

/// "run NAME", "direct NAME": the schedule, twice, with the gradients compared; tensors in messages, or past them.
void runSchedule(Transport& transport, const std::string& name, bool linked) {
  const auto schedule = scheduleNamed(name, transport.size());
  const auto expected = test::expectedGradients(schedule);
  const auto link = linked ? linkOf(transport, schedule) : nullptr;
  LinearStages stages(schedule);
  for (int step = 1; step <= 2; ++step) {
    runRank(schedule, transport, stages, {}, link.get());
    for (const auto& [stage, gradient] : stages.gradients) ASSERT_EQ(gradient, step * expected.at(stage));
  }
  transport.barrier();
  fmt::print("trained {} stages\n", stages.gradients.size());
}

/// "trouble WHAT": rank 1 comes to grief in the middle, in one way or another.
void makeTrouble(Transport& transport, const std::string& what) {
  const auto schedule = scheduleNamed("1F1B", transport.size());
  LinearStages stages(schedule);
  const auto rank = transport.rank();
  stages.onForward = [&](std::int32_t, std::int32_t microbatch) {
    if (rank != 1 || microbatch != 2) return;
    if (what == "killed") kill(getpid(), SIGKILL);
    if (what == "stopped") kill(getpid(), SIGSTOP);
    if (what == "throws") throw Error(ErrorCode::execution, "out of memory", "aten.mm");
    if (what == "leaves") _exit(5);
  };
  // By the fifth microbatch a gradient has come back through all ranks: none still connects, which would wait for as
  // long as a meeting may take.
  if (what == "keeper" && rank == 0)
    stages.onForward = [](std::int32_t, std::int32_t microbatch) {
      if (microbatch == 4) kill(getpid(), SIGKILL);
    };
  const bool linked = what == "killed directly";
  if (linked)
    stages.onForward = [rank](std::int32_t, std::int32_t microbatch) {
      if (rank == 1 && microbatch == 2) kill(getpid(), SIGKILL);
    };
  const auto link = linked ? linkOf(transport, schedule) : nullptr;
  runRank(schedule, transport, stages, {}, link.get());
}

void sumNumbers(Transport& transport, bool linked) {
  const auto link = linked ? transport.linkDevices(Device(), {}).link : nullptr;
  for (const auto dtype : {DType::f64, DType::f32, DType::bf16, DType::c64, DType::i64}) {
    TensorMeta meta;
    meta.dtype = dtype;
    meta.sizes = {2, 2};
    meta.strides = {2, 1};
    TensorMap tensors;
    auto memory = std::make_shared<Bytes>(static_cast<std::size_t>(meta.bytes()));
    if (transport.rank() != 1) {  // one rank has nothing to add
      if (dtype == DType::f64) {
        const double four[] = {1, 2, 3, transport.rank() + 0.5};
        std::memcpy(memory->data(), four, sizeof four);
      }
      tensors["g"] = {meta, memory->data(), memory->size(), memory};
    }
    sumOverRanks(transport, tensors, {{"g", meta}}, link.get());
    if (dtype == DType::f64) ASSERT_EQ(test::numbersOf({tensors["g"].meta, tensors["g"].data, 32, {}}).size(), 4u);
    if (dtype != DType::f64) continue;
    double sum[4];
    std::memcpy(sum, tensors["g"].data, sizeof sum);
    ASSERT_EQ(sum[0], 2);
    ASSERT_EQ(sum[2], 6);
    ASSERT_EQ(sum[3], 3);  // 0.5 + 2.5
  }
  fmt::print("summed\n");
}

/// Ranks that do not offer the same: one rank's stages run on several devices.
void differ(Transport& transport) {
  const auto [link, refusal] =
      transport.linkDevices(transport.rank() == 1 ? std::nullopt : std::optional(Device()), {});
  ASSERT_EQ(link, nullptr);
  ASSERT_EQ(refusal, "the stages of rank 1 run on several devices");
  fmt::print("refused\n");
}

/// Ranks that would each cut elsewhere.
void agree(Transport& transport) {
  std::vector<std::size_t> own{3, 7};
  if (transport.rank() == 1) own = {4};
  if (transport.rank() == 2) own = {1, 2, 9};
  ASSERT_EQ(fromFirstRank(transport, own), (std::vector<std::size_t>{3, 7}));
  if (transport.rank() == 0) own.clear();
  ASSERT_TRUE(fromFirstRank(transport, own).empty());
  fmt::print("agreed\n");
}

/// What each launched process is.
TEST(RankProcess, DISABLED_body) {
  const auto what = scenario();
  auto where = rendezvousFromEnvironment();
  where.silence = 4s;
  where.meeting = what.starts_with("late") ? 3s : 60s;
  if (what.starts_with("late") && where.rank == 1) return;  // never comes
  try {
    const auto transport = connectRanks(where);
    if (what.starts_with("run ")) runSchedule(*transport, what.substr(4), false);
    if (what.starts_with("direct ")) runSchedule(*transport, what.substr(7), true);
    if (what.starts_with("trouble ")) makeTrouble(*transport, what.substr(8));
    if (what == "sum" || what == "sum directly") sumNumbers(*transport, what != "sum");
    if (what == "differ") differ(*transport);
    if (what == "agree") agree(*transport);
    if (what == "barrier") {
      if (where.rank == 1) kill(getpid(), SIGKILL);
      transport->barrier();
    }
  } catch (const std::exception& error) {
    fmt::print("reported: {}\n", messageOf(error));
    std::fflush(stdout);
    FAIL();
  }
}

struct Ran {
  LaunchResult result;
  std::vector<std::vector<std::string>> lines;  ///< of each rank
  double seconds = 0;

  std::string reportOf(int rank) const {
    for (const auto& line : lines[static_cast<std::size_t>(rank)])
      if (line.starts_with("reported: ")) return line.substr(10);
    return {};
  }
  bool says(int rank, const std::string& text) const {
    for (const auto& line : lines[static_cast<std::size_t>(rank)])
      if (line == text) return true;
    return false;
  }
  std::string all() const {
    std::string text;
    for (std::size_t rank = 0; rank < lines.size(); ++rank)
      for (const auto& line : lines[rank]) text += std::to_string(rank) + ": " + line + "\n";
    return text;
  }
};

Ran launch(int ranks, const std::string& what, std::chrono::milliseconds grace = 30s) {
  Ran ran;
  ran.lines.resize(static_cast<std::size_t>(ranks));
  LaunchOptions options;
  options.ranks = ranks;
  options.grace = grace;
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_also_run_disabled_tests",
                     "--gtest_filter=RankProcess.DISABLED_body"};
  options.onLine = [&](int rank, bool, std::string_view line) {
    ran.lines[static_cast<std::size_t>(rank)].emplace_back(line);
  };
  setenv(scenarioVariable, what.c_str(), 1);
  const auto begin = std::chrono::steady_clock::now();
  ran.result = launchRanks(options);
  ran.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  unsetenv(scenarioVariable);
  return ran;
}

TEST(Gloo, schedulesTrainOverProcesses) {
  for (const auto& [name, ranks, stages] :
       {std::tuple("1F1B", 2, 1), {"ZBVZeroBubble", 3, 2}, {"DualPipeV", 2, 2}, {"skip", 4, 1}}) {
    for (const char* how : {"run ", "direct "}) {
      SCOPED_TRACE(std::string(how) + name);
      const auto ran = launch(ranks, std::string(how) + name);
      EXPECT_EQ(ran.result.exitCode, 0) << ran.all();
      for (int rank = 0; rank < ranks; ++rank)
        EXPECT_TRUE(ran.says(rank, "trained " + std::to_string(stages) + " stages"));
    }
  }
}

TEST(Gloo, gradientsAreSummedOverRanks) {
  for (const char* how : {"sum", "sum directly"}) {
    const auto ran = launch(3, how);
    EXPECT_EQ(ran.result.exitCode, 0) << ran.all();
    EXPECT_TRUE(ran.says(2, "summed"));
  }
}

TEST(Gloo, ranksThatCannotBeLinkedAllHearWhy) {
  const auto ran = launch(3, "differ");
  EXPECT_EQ(ran.result.exitCode, 0) << ran.all();
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(ran.says(rank, "refused")) << ran.all();
}

TEST(Gloo, ranksAgreeWithTheFirst) {
  const auto ran = launch(3, "agree");
  EXPECT_EQ(ran.result.exitCode, 0) << ran.all();
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(ran.says(rank, "agreed")) << ran.all();
}

TEST(Gloo, aRankThatDiesIsReportedByAllOthers) {
  for (const char* what : {"killed", "killed directly", "leaves"}) {
    SCOPED_TRACE(what);
    const auto ran = launch(4, std::string("trouble ") + what);
    EXPECT_EQ(ran.result.failedRank, 1);
    EXPECT_EQ(ran.result.exitCode, std::string(what).starts_with("killed") ? 128 + SIGKILL : 5);
    for (const int rank : {0, 2, 3})
      EXPECT_NE(ran.reportOf(rank).find(": rank 1 is gone or does not answer: "), std::string::npos) << ran.all();
    EXPECT_LT(ran.seconds, 25) << ran.all();
  }
}

TEST(Gloo, aRankThatStopsOrThrowsIsReportedByAllOthers) {
  const auto thrown = launch(3, "trouble throws");
  for (const int rank : {0, 2})
    EXPECT_NE(thrown.reportOf(rank).find("rank 1 failed: action 11 (1F2): aten.mm: out of memory"), std::string::npos)
        << thrown.all();
  const auto stopped = launch(3, "trouble stopped", 8s);
  for (const int rank : {0, 2})
    EXPECT_NE(stopped.reportOf(rank).find("rank 1 has given no sign of life for 4 s"), std::string::npos)
        << stopped.all();
  EXPECT_NE(stopped.result.exitCode, 0);
}

TEST(Gloo, theRankThatKeepsTheStoreMayDieToo) {
  const auto ran = launch(3, "trouble keeper");
  EXPECT_EQ(ran.result.failedRank, 0);
  for (const int rank : {1, 2}) EXPECT_NE(ran.reportOf(rank).find("rank 0"), std::string::npos) << ran.all();
}

TEST(Gloo, aBarrierDoesNotWaitForTheDead) {
  const auto ran = launch(3, "barrier");
  for (const int rank : {0, 2}) EXPECT_EQ(ran.reportOf(rank), "rank 1 has given no sign of life for 4 s") << ran.all();
  EXPECT_LT(ran.seconds, 30) << ran.all();
}

TEST(Gloo, aRankThatDoesNotComeIsWaitedForInVainNotForEver) {
  const auto ran = launch(2, "late");
  EXPECT_NE(ran.reportOf(0).find("rank 0 of 2 does not meet the others"), std::string::npos) << ran.all();
  EXPECT_LT(ran.seconds, 25);
}

}  // namespace
}  // namespace retrograd
