#include "core/ranks/launch.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "core/ranks/transport.h"

namespace retrograd {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Ran {
  LaunchResult result;
  std::vector<std::string> lines;  ///< "0 out text", sorted
  double seconds = 0;
};

Ran launch(int ranks, const std::string& script, std::chrono::milliseconds grace = 10s) {
  Ran ran;
  LaunchOptions options;
  options.ranks = ranks;
  options.command = {"/bin/sh", "-c", script};
  options.grace = grace;
  options.onLine = [&](int rank, bool isError, std::string_view line) {
    ran.lines.push_back(std::to_string(rank) + (isError ? " err " : " out ") + std::string(line));
  };
  const auto begin = Clock::now();
  ran.result = launchRanks(options);
  ran.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::sort(ran.lines.begin(), ran.lines.end());
  return ran;
}

TEST(Launch, everyRankKnowsItsPlace) {
  const auto ran = launch(3, "echo $RANK $LOCAL_RANK of $WORLD_SIZE at $MASTER_ADDR; echo oops >&2; printf unfinished");
  EXPECT_EQ(ran.result.exitCode, 0);
  EXPECT_EQ(ran.result.failedRank, -1);
  EXPECT_EQ(ran.lines, (std::vector<std::string>{"0 err oops", "0 out 0 0 of 3 at 127.0.0.1", "0 out unfinished",
                                                 "1 err oops", "1 out 1 1 of 3 at 127.0.0.1", "1 out unfinished",
                                                 "2 err oops", "2 out 2 2 of 3 at 127.0.0.1", "2 out unfinished"}));
}

TEST(Launch, allAreGivenOnePort) {
  const auto ran = launch(2, "echo $MASTER_PORT");
  ASSERT_EQ(ran.lines.size(), 2u);
  EXPECT_EQ(ran.lines[0].substr(2), ran.lines[1].substr(2));
  EXPECT_GT(std::stoi(ran.lines[0].substr(6)), 0);
}

TEST(Launch, theFirstFailureEndsAllAndGivesTheExitCode) {
  const auto ran = launch(3, "if [ $RANK = 1 ]; then exit 7; fi; sleep 60; exit 9", 300ms);
  EXPECT_EQ(ran.result.exitCode, 7);
  EXPECT_EQ(ran.result.failedRank, 1);
  EXPECT_EQ(ran.result.failure, "rank 1 ended with exit code 7");
  EXPECT_LT(ran.seconds, 30);
}

TEST(Launch, othersMayReportBeforeTheyEnd) {
  const auto ran = launch(2, "if [ $RANK = 1 ]; then kill -9 $$; fi; sleep 1; echo rank 1 is gone; exit 1", 30s);
  EXPECT_EQ(ran.result.exitCode, 128 + SIGKILL);
  EXPECT_EQ(ran.result.failedRank, 1);
  EXPECT_EQ(ran.lines, (std::vector<std::string>{"0 out rank 1 is gone"}));
}

TEST(Launch, whoIgnoresTheRequestIsKilledWithItsChildren) {
  const auto ran = launch(2, "trap '' TERM; if [ $RANK = 1 ]; then exit 3; fi; sleep 60 & sleep 60; sleep 60", 100ms);
  EXPECT_EQ(ran.result.exitCode, 3);
  EXPECT_LT(ran.seconds, 40);
}

TEST(Launch, aStopRequestEndsAll) {
  std::stop_source stop;
  std::thread later([&] {
    std::this_thread::sleep_for(300ms);
    stop.request_stop();
  });
  LaunchOptions options;
  options.ranks = 2;
  options.command = {"/bin/sleep", "60"};
  const auto begin = Clock::now();
  try {
    launchRanks(options, Progress(stop.get_token(), {}));
    ADD_FAILURE() << "it did not stop";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  later.join();
  EXPECT_LT(Clock::now() - begin, 30s);
}

TEST(Launch, aProgramThatIsNotThereIsAFailure) {
  LaunchOptions options;
  options.command = {"/no/such/program"};
  try {
    launchRanks(options);
    ADD_FAILURE() << "it was started";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/no/such/program: the program cannot be started: No such file or directory");
  }
  EXPECT_THROW(launchRanks({}), Error);
}

TEST(Rendezvous, isReadFromTheEnvironmentAndSaysWhatIsMissing) {
  const auto with = [](const char* rank, const char* size) {
    setenv("RANK", rank, 1), setenv("WORLD_SIZE", size, 1), setenv("MASTER_ADDR", "127.0.0.1", 1),
        setenv("MASTER_PORT", "29500", 1);
    try {
      const auto where = rendezvousFromEnvironment();
      return std::to_string(where.rank) + "/" + std::to_string(where.size) + " " + where.address + ":" +
             std::to_string(where.port);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(with("2", "4"), "2/4 127.0.0.1:29500");
  EXPECT_EQ(with("4", "4"), "RANK: '4' is not a number from 0 to 3");
  EXPECT_EQ(with("1x", "4"), "RANK: '1x' is not a number from 0 to 3");
  EXPECT_NE(with("0", "").find("WORLD_SIZE: is not set"), std::string::npos);
  for (const auto* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) unsetenv(name);
}

}  // namespace
}  // namespace retrograd
