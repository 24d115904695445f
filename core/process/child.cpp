#include "core/process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace retrograd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int pollMilliseconds = 50;  // how long a wish to stop waits at most

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorCode::io, fmt::format("{}: {}", what, strerror(errno)), "child process");
}

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

/// Descriptors that close on the way out of a scope, whatever happens.
struct Handles {
  std::vector<int> all;
  ~Handles() {
    for (int handle : all) ::close(handle);
  }
};

/// After fork, in the child: only what is safe there.
void settle(pid_t parent, const ChildOptions& options) {
  if (options.endsWithThread) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it ended before the line above
  }
  if (options.ownGroup) setpgid(0, 0);
  for (int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.memory) limit(RLIMIT_DATA, options.memory);
  if (options.cpuSeconds) limit(RLIMIT_CPU, options.cpuSeconds);
  limit(RLIMIT_CORE, 0);
}

/// After fork, in the child: becomes the program, or hands back why not.
[[noreturn]] void become(const int (&streams)[3], int complain, char* const* arguments, char* const* environment) {
  // Above the three first, so that none is overwritten before it is copied.
  int moved[3];
  for (int i = 0; i < 3; ++i) moved[i] = fcntl(streams[i], F_DUPFD_CLOEXEC, 3);
  for (int i = 0; i < 3; ++i)
    if (moved[i] < 0 || dup2(moved[i], i) < 0) _exit(127);
  syscall(
      SYS_close_range, 3u, ~0u,
      CLOSE_RANGE_CLOEXEC);  // what others opened without closing it on exec, and what this process was started with
  execve(arguments[0], arguments, environment);
  const int why = errno;
  [[maybe_unused]] const auto ignored = write(complain, &why, sizeof why);
  _exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

bool Ending::isSignal() const { return WIFSIGNALED(status); }
int Ending::signal() const { return WTERMSIG(status); }
int Ending::exitCode() const { return isSignal() ? 128 + signal() : WEXITSTATUS(status); }

std::string Ending::text() const {
  if (isSignal()) return fmt::format("ended by signal {} ({})", signal(), strsignal(signal()));
  return fmt::format("ended with exit code {}", exitCode());
}

/// Makes the streams: this process's ends into the members, the child's into `theirs`. All close on exec.
void Child::open(ChildOptions::Streams streams, int (&theirs)[3]) {
  int ends[2];
  if (streams == ChildOptions::Streams::socket) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
    output_ = ends[0];
    theirs[0] = theirs[1] = ends[1];
  } else if (streams == ChildOptions::Streams::pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    output_ = ends[0], theirs[1] = ends[1];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      const int why = errno;
      ::close(theirs[1]);
      closeAll();
      errno = why;
      fail("pipe");
    }
    errors_ = ends[0], theirs[2] = ends[1];
  }
  for (int handle : {output_, errors_})
    if (handle >= 0) fcntl(handle, F_SETFL, fcntl(handle, F_GETFL) | O_NONBLOCK);
}

Child::Child(const std::vector<std::string>& command, const ChildOptions& options) : ownGroup_(options.ownGroup) {
  if (command.empty()) throw Error(ErrorCode::internal, "no command", "child process");
  const auto arguments = pointers(command);
  const auto variables = pointers(options.environment);
  int theirs[3] = {-1, -1, -1}, complaint[2];
  Handles handles;
  open(options.streams, theirs);
  try {
    for (int i = 0; i < 3; ++i) {
      if (theirs[i] < 0) theirs[i] = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      if (theirs[i] < 0) fail("/dev/null");
      if (std::find(handles.all.begin(), handles.all.end(), theirs[i]) == handles.all.end())
        handles.all.push_back(theirs[i]);
    }
    if (pipe2(complaint, O_CLOEXEC) != 0) fail("pipe");
  } catch (...) {
    closeAll();
    throw;
  }
  const pid_t parent = getpid();
  process_ = ::fork();
  if (process_ == 0) {
    settle(parent, options);
    become(theirs, complaint[1], arguments.data(), options.environment.empty() ? environ : variables.data());
  }
  const int why = errno;
  ::close(complaint[1]);
  int refused = 0;
  const bool wasRefused = process_ > 0 && TEMP_FAILURE_RETRY(::read(complaint[0], &refused, sizeof refused)) ==
                                              static_cast<ssize_t>(sizeof refused);
  ::close(complaint[0]);
  if (process_ > 0 && !wasRefused) return;
  kill();
  closeAll();
  errno = wasRefused ? refused : why;
  throw Error(ErrorCode::io, fmt::format("the program cannot be started: {}", strerror(errno)), command[0]);
}

Child::Child(const std::function<int(int output)>& body, const ChildOptions& options) : ownGroup_(options.ownGroup) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  const pid_t parent = getpid();
  process_ = ::fork();
  if (process_ == 0) {
    ::close(ends[0]);
    settle(parent, options);
    int code = 127;
    try {
      code = body(ends[1]);
    } catch (...) {
    }
    _exit(code);  // no destructors: they belong to the parent
  }
  const int why = errno;
  ::close(ends[1]);
  output_ = ends[0];
  fcntl(output_, F_SETFL, fcntl(output_, F_GETFL) | O_NONBLOCK);
  if (process_ > 0) return;
  closeAll();
  errno = why;
  fail("fork");
}

Child::~Child() {
  kill();
  closeAll();
}

void Child::closeAll() {
  for (int* handle : {&output_, &errors_})
    if (*handle >= 0) ::close(std::exchange(*handle, -1));
}

void Child::signal(int number) const {
  if (process_ <= 0) return;
  if (!ownGroup_ || ::kill(-process_, number) != 0) ::kill(process_, number);
}

std::optional<Ending> Child::ended() {
  Ending ending;
  if (process_ <= 0 || waitpid(process_, &ending.status, WNOHANG) != process_) return std::nullopt;
  process_ = -1;
  return ending;
}

std::optional<Ending> Child::await(std::chrono::duration<double> limit, const Progress& progress) {
  const auto start = Clock::now();
  // Readable once the process has ended. Where the kernel has none, the time of a poll passes.
  const Handles handle{{static_cast<int>(syscall(SYS_pidfd_open, process_, 0))}};
  for (;;) {
    if (const auto ending = ended()) return ending;
    if (progress.stopRequested()) kill();
    progress.check();
    if (Clock::now() - start > limit) {
      kill();
      return std::nullopt;
    }
    pollfd waiting{handle.all[0], POLLIN, 0};
    poll(&waiting, 1, pollMilliseconds);
  }
}

void Child::kill() {
  if (process_ <= 0) return;
  signal(SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

LineReader::LineReader(int handle, std::function<void(std::string_view)> onLine, std::size_t longest)
    : handle_(handle), onLine_(std::move(onLine)), longest_(longest) {}

void LineReader::read() {
  char buffer[8192];
  while (!ended_) {
    const auto count = ::read(handle_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) fail("what it writes cannot be read");  // not its end: the rest would be lost without a word
    if (count == 0) return finish();
    for (const char c : std::string_view(buffer, count)) {
      if (c != '\n') rest_ += c;
      if (c == '\n' || rest_.size() >= longest_) {
        onLine_(rest_);
        rest_.clear();
      }
    }
  }
}

void LineReader::finish() {
  if (std::exchange(ended_, true)) return;
  if (!rest_.empty()) onLine_(rest_);
  rest_.clear();
}

}  // namespace retrograd
