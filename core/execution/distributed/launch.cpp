#include "core/execution/distributed/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

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
  const bool bound = bind(handle, reinterpret_cast<sockaddr*>(&address), length) == 0 && getsockname(handle, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(handle);
  if (!bound) fail("no free port");
  return ntohs(address.sin_port);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environmentOf(int rank, int ranks, int port) {
  const std::vector<std::pair<std::string, std::string>> ours{{"RANK", std::to_string(rank)}, {"LOCAL_RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(ranks)},
                                                              {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}};
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const auto name = text.substr(0, text.find('='));
    if (std::none_of(ours.begin(), ours.end(), [&](const auto& variable) { return variable.first == name; })) result.emplace_back(text);
  }
  for (const auto& [name, value] : ours) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

/// Between fork and exec: only what is safe there.
[[noreturn]] void become(pid_t parent, int out, int errors, char* const* arguments, char* const* environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it ended before the line above
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int silence = open("/dev/null", O_RDONLY);
  dup2(silence, 0);
  dup2(out, 1);
  dup2(errors, 2);
  execve(arguments[0], arguments, environment);
  constexpr char message[] = "the program cannot be started\n";
  [[maybe_unused]] const auto ignored = write(2, message, sizeof message - 1);
  _exit(127);
}

/// Splits what a stream brings into lines.
class LineReader {
 public:
  LineReader(int handle, std::function<void(std::string_view)> onLine) : handle_(handle), onLine_(std::move(onLine)) { fcntl(handle, F_SETFL, O_NONBLOCK); }
  ~LineReader() { finish(); }
  LineReader(const LineReader&) = delete;

  int handle() const { return handle_; }  ///< -1 at its end
  void read() {
    char buffer[8192];
    while (handle_ >= 0) {
      const auto count = ::read(handle_, buffer, sizeof buffer);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) return finish();
      for (const char c : std::string_view(buffer, static_cast<std::size_t>(count))) {
        if (c != '\n') rest_ += c;
        if (c == '\n' || rest_.size() >= longestLine) flush();
      }
    }
  }
  /// What is there and a last line without an end; nothing is read afterwards.
  void finish() {
    if (handle_ < 0) return;
    close(std::exchange(handle_, -1));
    if (!rest_.empty()) flush();
  }

 private:
  void flush() {
    onLine_(rest_);
    rest_.clear();
  }
  int handle_;
  std::function<void(std::string_view)> onLine_;
  std::string rest_;
};

/// A process; killed where nobody waited for its end.
class RankProcess {
 public:
  RankProcess(int rank, const LaunchOptions& options, int port) {
    auto command = options.command;
    auto environment = environmentOf(rank, options.ranks, port);
    const auto argumentList = pointers(command), environmentList = pointers(environment);
    int out[2], errors[2];
    if (pipe2(out, O_CLOEXEC) != 0) fail("pipe");
    if (pipe2(errors, O_CLOEXEC) != 0) {
      close(out[0]), close(out[1]);
      fail("pipe");
    }
    const auto parent = getpid();
    process_ = fork();
    if (process_ == 0) become(parent, out[1], errors[1], argumentList.data(), environmentList.data());
    const int why = errno;
    close(out[1]), close(errors[1]);
    readers_[0].emplace(out[0], [&options, rank](std::string_view line) { options.onLine(rank, false, line); });
    readers_[1].emplace(errors[0], [&options, rank](std::string_view line) { options.onLine(rank, true, line); });
    errno = why;
    if (process_ < 0) fail("fork");
  }
  ~RankProcess() {
    if (process_ <= 0) return;
    signal(SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  RankProcess(const RankProcess&) = delete;

  bool running() const { return process_ > 0; }
  /// The whole group, for a rank may have processes of its own.
  void signal(int number) const {
    if (process_ <= 0) return;
    if (kill(-process_, number) != 0) kill(process_, number);
  }
  void collectHandles(std::vector<pollfd>& handles) const {
    for (const auto& reader : readers_)
      if (reader->handle() >= 0) handles.push_back({reader->handle(), POLLIN, 0});
  }
  void read() {
    for (auto& reader : readers_) reader->read();
  }
  /// Its status, once: when it has ended and all that it wrote is read.
  std::optional<int> ended() {
    int status = 0;
    if (process_ <= 0 || waitpid(process_, &status, WNOHANG) != process_) return std::nullopt;
    process_ = -1;
    read();
    for (auto& reader : readers_) reader->finish();
    return status;
  }

 private:
  pid_t process_ = -1;
  std::optional<LineReader> readers_[2];
};

class Launch {
 public:
  Launch(const LaunchOptions& options, const Progress& progress) : options_(options), progress_(progress) {
    const auto port = freePort();
    for (int rank = 0; rank < options.ranks; ++rank) processes_.push_back(std::make_unique<RankProcess>(rank, options_, port));
  }

  LaunchResult run() {
    while (anyRunning()) {
      if (progress_.stopRequested()) end();
      progress_.check();
      waitForOutput();
      for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
        processes_[rank]->read();
        if (const auto status = processes_[rank]->ended()) note(static_cast<int>(rank), *status);
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

  void note(int rank, int status) {
    if (status == 0 || result_.failedRank >= 0) return;
    failed_ = Clock::now();
    result_.failedRank = rank;
    result_.exitCode = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    result_.failure = WIFSIGNALED(status) ? fmt::format("rank {} was ended by a signal ({})", rank, strsignal(WTERMSIG(status)))
                                          : fmt::format("rank {} ended with exit code {}", rank, WEXITSTATUS(status));
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
  if (options.ranks < 1 || options.ranks > mostRanks) throw Error(ErrorCode::badUse, fmt::format("ranks are 1 to {}", mostRanks));
  if (options.command.empty()) throw Error(ErrorCode::badUse, "no command for the ranks to run");
  auto complete = options;
  if (!complete.onLine) complete.onLine = printLine;
  return Launch(complete, progress).run();
}

}  // namespace retrograd
