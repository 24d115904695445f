#include "core/process/child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace retrograd {
namespace {

using namespace std::chrono_literals;

ChildOptions piped() {
  ChildOptions options;
  options.streams = ChildOptions::Streams::pipes;
  return options;
}

struct Ran {
  Ending ending;
  std::vector<std::string> lines;
};

Ran shell(const std::string& script, const ChildOptions& options = piped()) {
  Ran ran;
  Child child({"/bin/sh", "-c", script}, options);
  LineReader reader(child.output(), [&](std::string_view line) { ran.lines.emplace_back(line); }, 1 << 16);
  while (reader.open()) {
    pollfd waiting{reader.handle(), POLLIN, 0};
    poll(&waiting, 1, 100);
    reader.read();
  }
  ran.ending = child.await(20s, {}).value();
  return ran;
}

// No child keeps another's pipe open, so the end of one is seen while others live.
TEST(Child, getsNoDescriptorButItsStreams) {
  const Child other({"/bin/sleep", "30"}, piped());
  ChildOptions socket;
  socket.streams = ChildOptions::Streams::socket;
  const Child another({"/bin/cat"}, socket);
  // 3 is the folder that ls reads.
  EXPECT_EQ(shell("exec ls /proc/self/fd").lines, (std::vector<std::string>{"0", "1", "2", "3"}));
}

TEST(Child, itsEndIsReportedInWords) {
  EXPECT_EQ(shell("exit 3").ending.text(), "ended with exit code 3");
  EXPECT_EQ(shell("kill -SEGV $$").ending.text(), "ended by signal 11 (Segmentation fault)");
  EXPECT_EQ(shell("kill -KILL $$").ending.exitCode(), 137);
  EXPECT_TRUE(shell("true").ending.good());
}

TEST(Child, isKilledWhenItsTimeIsOverAndWhenItIsCancelled) {
  const auto begin = std::chrono::steady_clock::now();
  Child slow({"/bin/sleep", "30"}, {});
  EXPECT_FALSE(slow.await(200ms, {}));
  EXPECT_FALSE(slow.running());
  Child cancelled({"/bin/sleep", "30"}, {});
  const auto process = cancelled.id();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(cancelled.await(30s, Progress(stop.get_token(), {})), Error);
  EXPECT_EQ(::kill(process, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(Child, itsEndIsSeenWhileProcessesOfItsOwnLive) {
  const auto begin = std::chrono::steady_clock::now();
  Child child({"/bin/sh", "-c", "sleep 20 & exit 4"}, piped());
  const auto ending = child.await(15s, {});
  ASSERT_TRUE(ending);
  EXPECT_EQ(ending->exitCode(), 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(Child, hasLimits) {
  auto options = piped();
  options.cpuSeconds = 1;
  EXPECT_TRUE(shell("while :; do :; done", options).ending.isSignal());
  options = piped();
  options.memory = 64 << 20;
  EXPECT_EQ(shell("ulimit -d; ulimit -c", options).lines, (std::vector<std::string>{"65536", "0"}));
}

TEST(Child, hasAGroupOfItsOwnThatEndsWithIt) {
  auto options = piped();
  options.ownGroup = true;
  Child child({"/bin/sh", "-c", "sleep 30 & echo $!; wait"}, options);
  std::string line;
  LineReader reader(child.output(), [&](std::string_view text) { line = text; }, 100);
  while (line.empty()) {
    pollfd waiting{reader.handle(), POLLIN, 0};
    poll(&waiting, 1, 100);
    reader.read();
  }
  child.kill();
  std::this_thread::sleep_for(100ms);
  const auto grandchild = static_cast<pid_t>(std::stoi(line));
  const bool gone = ::kill(grandchild, 0) != 0;
  char state = 'Z';  // or waits for whoever takes it over
  if (auto* status = gone ? nullptr : fopen(("/proc/" + line + "/stat").c_str(), "r")) {
    [[maybe_unused]] const int read = fscanf(status, "%*d %*s %c", &state);
    fclose(status);
  }
  EXPECT_TRUE(gone || state == 'Z');
}

TEST(Child, aProgramThatCannotBeStartedIsAnErrorThatNamesIt) {
  try {
    const Child child({"/no/such/program"}, {});
    ADD_FAILURE() << "it was started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_STREQ(error.what(), "/no/such/program: the program cannot be started: No such file or directory");
  }
}

TEST(LineReader, aFailedReadIsNotAnEnd) {
  LineReader reader(-1, [](std::string_view) {}, 100);
  EXPECT_THROW(reader.read(), Error);
}

TEST(Child, aCopyOfThisProcessWritesToThePipe) {
  Child child([](int output) { return write(output, "one\ntwo", 7) == 7 ? 5 : 6; }, {});
  std::vector<std::string> lines;
  LineReader reader(child.output(), [&](std::string_view line) { lines.emplace_back(line); }, 100);
  const auto ending = child.await(10s, {});
  reader.read();
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(ending.value().exitCode(), 5);
}

}  // namespace
}  // namespace retrograd
