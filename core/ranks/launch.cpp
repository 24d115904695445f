#include "core/ranks/launch.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "core/process/child.h"

namespace retrograd {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto afterTerm = 2000ms, tick = 50ms;
constexpr int mostRanks = 1024;
constexpr std::size_t longestLine = 1 << 16;

[[noreturn]] void fail(const char* what) { throw Error(ErrorCode::io, fmt::format("{}: {}", what, strerror(errno))); }

/// A port that was free a moment ago.
int freePort() {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = bind(handle, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(handle, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(handle);
  if (!bound) fail("no free port");
  return ntohs(address.sin_port);
}

std::vector<std::string> environmentOf(int rank, int ranks, int port) {
  const std::vector<std::pair<std::string, std::string>> ours{{"RANK", std::to_string(rank)},
                                                              {"LOCAL_RANK", std::to_string(rank)},
                                                              {"WORLD_SIZE", std::to_string(ranks)},
                                                              {"MASTER_ADDR", "127.0.0.1"},
                                                              {"MASTER_PORT", std::to_string(port)}};
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const auto name = text.substr(0, text.find('='));
    if (std::none_of(ours.begin(), ours.end(), [&](const auto& variable) { return variable.first == name; }))
      result.emplace_back(text);
  }
  for (const auto& [name, value] : ours) result.push_back(fmt::format("{}={}", name, value));
  // By itself NCCL takes any interface but the loopback for its own meeting.
  if (!std::getenv("NCCL_SOCKET_IFNAME")) result.emplace_back("NCCL_SOCKET_IFNAME=lo");
  return result;
}

ChildOptions childOptions(int rank, int ranks, int port) {
  ChildOptions options;
  options.streams = ChildOptions::Streams::pipes;
  options.environment = environmentOf(rank, ranks, port);
  options.ownGroup = true;  // a rank may have processes of its own
  options.endsWithThread = true;
  return options;
}

/// One rank with the lines that it writes.
class RankProcess {
 public:
  RankProcess(int rank, const LaunchOptions& options, int port)
      : child_(options.command, childOptions(rank, options.ranks, port)),
        output_(
            child_.output(), [&options, rank](std::string_view line) { options.onLine(rank, false, line); },
            longestLine),
        errors_(
            child_.errors(), [&options, rank](std::string_view line) { options.onLine(rank, true, line); },
            longestLine) {}

  bool running() const { return child_.running(); }
  void signal(int number) const { child_.signal(number); }
  void collectHandles(std::vector<pollfd>& handles) const {
    for (const auto* reader : {&output_, &errors_})
      if (reader->open()) handles.push_back({reader->handle(), POLLIN, 0});
  }
  void read() {
    output_.read();
    errors_.read();
  }
  /// How it ended, once: when all that it wrote is read.
  std::optional<Ending> ended() {
    const auto ending = child_.ended();
    if (!ending) return std::nullopt;
    read();
    output_.finish();
    errors_.finish();
    return ending;
  }

 private:
  Child child_;
  LineReader output_, errors_;
};

class Launch {
 public:
  Launch(const LaunchOptions& options, const Progress& progress) : options_(options), progress_(progress) {
    const auto port = freePort();
    for (int rank = 0; rank < options.ranks; ++rank)
      processes_.push_back(std::make_unique<RankProcess>(rank, options_, port));
  }

  LaunchResult run() {
    while (anyRunning()) {
      if (progress_.stopRequested()) end();
      progress_.check();
      waitForOutput();
      for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
        processes_[rank]->read();
        if (const auto ending = processes_[rank]->ended()) note(static_cast<int>(rank), *ending);
      }
      pressOn();
    }
    return std::move(result_);
  }

 private:
  bool anyRunning() const {
    return std::any_of(processes_.begin(), processes_.end(), [](const auto& process) { return process->running(); });
  }
  void waitForOutput() const {
    std::vector<pollfd> handles;
    for (const auto& process : processes_) process->collectHandles(handles);
    poll(handles.data(), handles.size(), static_cast<int>(tick / 1ms));
  }

  void note(int rank, const Ending& ending) {
    if (ending.good() || result_.failedRank >= 0) return;
    failed_ = Clock::now();
    result_.failedRank = rank;
    result_.exitCode = ending.exitCode();
    result_.failure = ending.isSignal()
                          ? fmt::format("rank {} was ended by a signal ({})", rank, strsignal(ending.signal()))
                          : fmt::format("rank {} {}", rank, ending.text());
  }

  /// After a failure: a time to end by themselves, then a request, then the end.
  void pressOn() {
    if (result_.failedRank < 0) return;
    const auto since = Clock::now() - failed_;
    if (since > options_.grace + afterTerm) signal(SIGKILL);
    else if (since > options_.grace && !std::exchange(asked_, true)) signal(SIGTERM);
  }
  void signal(int number) const {
    for (const auto& process : processes_) process->signal(number);
  }
  void end() {
    signal(SIGTERM);
    const auto until = Clock::now() + afterTerm;
    while (anyRunning() && Clock::now() < until) {
      waitForOutput();
      for (auto& process : processes_) process->read(), process->ended();
    }
    signal(SIGKILL);
  }

  LaunchOptions options_;
  const Progress& progress_;
  std::vector<std::unique_ptr<RankProcess>> processes_;
  LaunchResult result_;
  Clock::time_point failed_;
  bool asked_ = false;
};

void printLine(int rank, bool isError, std::string_view line) {
  fmt::print(isError ? stderr : stdout, "[rank {}] {}\n", rank, line);
  std::fflush(isError ? stderr : stdout);
}

}  // namespace

LaunchResult launchRanks(const LaunchOptions& options, const Progress& progress) {
  if (options.ranks < 1 || options.ranks > mostRanks) badUse(fmt::format("ranks are 1 to {}", mostRanks));
  if (options.command.empty()) badUse("no command for the ranks to run");
  auto complete = options;
  if (!complete.onLine) complete.onLine = printLine;
  return Launch(complete, progress).run();
}

}  // namespace retrograd
