#include "core/debug/probe.h"

#include <fmt/format.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <new>

#include "core/formats/model_file.h"
#include "core/tracing/torchscript.h"

namespace retrograd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int refused = 2, outOfMemory = 3;
constexpr double baseSeconds = 60, bytesPerSecond = 20e6;
constexpr rlim_t maxMemory = rlim_t{8} << 30;

std::vector<std::string>& probeCommand() {
  static std::vector<std::string> command;
  return command;
}

/// Verifying takes time in proportion to the file; compiling does not.
double secondsFor(const std::string& path) {
  std::error_code ignored;
  return baseSeconds + static_cast<double>(std::filesystem::file_size(path, ignored)) / bytesPerSecond;
}

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

/// Between fork and exec: only what is safe there.
[[noreturn]] void become(char* const* arguments, rlim_t seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  limit(RLIMIT_DATA, maxMemory);
  limit(RLIMIT_CPU, seconds);
  limit(RLIMIT_CORE, 0);
  const int silence = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3 && silence >= 0; ++stream) dup2(silence, stream);
  execv(arguments[0], arguments);
  _exit(127);
}

/// A child process; killed where nobody waited for its end.
class Child {
 public:
  Child(const std::vector<std::string>& command, double seconds) {
    std::vector<char*> arguments;
    for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) throw Error(ErrorCode::io, fmt::format("pipe: {}", strerror(errno)));
    process_ = fork();
    if (process_ < 0) throw Error(ErrorCode::io, fmt::format("fork: {}", strerror(errno)));
    if (process_ == 0) {
      close(ends[0]);
      become(arguments.data(), static_cast<rlim_t>(seconds) + 1);
    }
    close(ends[1]);
    life_ = ends[0];
  }
  ~Child() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    close(life_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Waits a moment; true once the child has ended, which closes its end of the pipe.
  bool hasEnded() const {
    pollfd waiting{life_, POLLIN, 0};
    return poll(&waiting, 1, 50) > 0;
  }
  int status() {
    int status = 0;
    waitpid(std::exchange(process_, -1), &status, 0);
    return status;
  }

 private:
  pid_t process_ = -1;
  int life_ = -1;
};

}  // namespace

void setProbeCommand(std::vector<std::string> command) { probeCommand() = std::move(command); }

void probe(const std::string& path, const Progress& progress) {
  auto command = probeCommand();
  if (command.empty()) return;
  command.push_back(path);
  progress.at("trying the compiler", 0);
  const auto seconds = secondsFor(path);
  const auto start = Clock::now();
  Child child(command, seconds);
  while (!child.hasEnded()) {
    progress.check();
    if (std::chrono::duration<double>(Clock::now() - start).count() > seconds)
      throw Error(ErrorCode::badInput, fmt::format("LibTorch's compiler was still busy with its code after {:.0f} s", seconds), path);
  }
  const int status = child.status();
  if (WIFSIGNALED(status))
    throw Error(ErrorCode::badInput, fmt::format("LibTorch's compiler crashes on its code ({}); the file is damaged or hostile", strsignal(WTERMSIG(status))), path);
  if (WEXITSTATUS(status) == outOfMemory)
    throw Error(ErrorCode::badInput, fmt::format("LibTorch's compiler wants more than {} GiB of memory for its code", maxMemory >> 30), path);
  if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != refused)
    throw Error(ErrorCode::internal, fmt::format("the program that tries it ends with exit code {}", WEXITSTATUS(status)), path);
}

int runProbe(const std::string& path) {
  try {
    checkTorchScript(openModelArchive(path));
    return 0;
  } catch (const std::bad_alloc&) {
    return outOfMemory;
  } catch (const std::exception&) {
    return refused;
  }
}

}  // namespace retrograd
