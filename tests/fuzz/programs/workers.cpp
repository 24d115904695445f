#include "tests/fuzz/programs/workers.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <stdexcept>
#include <vector>

namespace retrograd::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Seconds of processor time that a process has used.
double usedBy(pid_t process) {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void writeAll(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const auto n = ::write(file, text.data() + done, text.size() - done);
    if (n <= 0) _exit(3);
    done += static_cast<std::size_t>(n);
  }
}

std::string howItDied(int status, bool hung) {
  if (hung) return "hung";
  if (WIFSIGNALED(status)) return "crashed: signal " + std::to_string(WTERMSIG(status));
  return "ended with " + std::to_string(WEXITSTATUS(status));
}

/// Whether there is something to read by now: shrinking what one worker found takes long, and the others go on
/// meanwhile.
bool hasToTell(int pipe) {
  pollfd file{pipe, POLLIN, 0};
  return ::poll(&file, 1, 0) > 0;
}

struct Range {
  std::uint64_t next, end;
};

struct Worker {
  pid_t process = -1;
  int pipe = -1;
  Range range{0, 0};  // next: the program that is under way
  std::string buffer;
  Clock::time_point began;
  double used = 0;  // of the processor, then
  bool hung = false;
};

}  // namespace

void runWorkers(const WorkerOptions& options, const std::function<std::string(std::uint64_t)>& work,
                const std::function<void(std::uint64_t, const std::string&)>& tell,
                const std::function<void(std::uint64_t, const std::string&)>& died) {
  const auto start = Clock::now();
  constexpr std::uint64_t chunk = 1000;
  std::uint64_t given = 0;
  std::deque<Range> left;
  std::vector<Worker> workers(static_cast<std::size_t>(options.jobs));
  const auto nextRange = [&]() -> Range {
    if (!left.empty()) {
      const auto range = left.front();
      left.pop_front();
      return range;
    }
    const Range range{given, std::min(options.count, given + chunk)};
    given = range.end;
    return range;
  };
  const auto begin = [&](Worker& worker) {
    const auto range = nextRange();
    if (range.next >= range.end || (options.seconds > 0 && since(start) > options.seconds)) return;
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const auto process = fork();
    if (process < 0) throw std::runtime_error("no process");
    if (process == 0) {
      ::close(ends[0]);
      for (auto i = range.next; i < range.end; ++i) writeAll(ends[1], work(i) + "\n");
      _exit(0);
    }
    ::close(ends[1]);
    worker = {process, ends[0], range, {}, Clock::now(), 0, false};
  };
  for (auto& worker : workers) begin(worker);
  for (;;) {
    std::vector<pollfd> files;
    std::vector<Worker*> running;
    for (auto& worker : workers)
      if (worker.process > 0) {
        files.push_back({worker.pipe, POLLIN, 0});
        running.push_back(&worker);
      }
    if (files.empty()) return;
    ::poll(files.data(), files.size(), 200);
    const bool over = options.seconds > 0 && since(start) > options.seconds;
    for (std::size_t i = 0; i < files.size(); ++i) {
      auto& worker = *running[i];
      bool ended = false;
      if (files[i].revents != 0) {
        char bytes[65536];
        const auto n = ::read(worker.pipe, bytes, sizeof bytes);
        if (n <= 0) ended = true;
        else worker.buffer.append(bytes, static_cast<std::size_t>(n));
        std::size_t from = 0;
        for (auto line = worker.buffer.find('\n'); line != std::string::npos; line = worker.buffer.find('\n', from)) {
          tell(worker.range.next++, worker.buffer.substr(from, line - from));
          worker.began = Clock::now();
          worker.used = usedBy(worker.process);
          from = line + 1;
        }
        worker.buffer.erase(0, from);
      }
      // On a busy machine a program may wait long: what counts is the processor, and ten times as long by the clock.
      const auto waited = since(worker.began);
      if (!ended && !worker.hung && !hasToTell(worker.pipe) && waited > options.hang &&
          (waited > 10 * options.hang || usedBy(worker.process) - worker.used > options.hang)) {
        worker.hung = true;
        ::kill(worker.process, SIGKILL);
      }
      if (!ended && over && !worker.hung) {
        ::kill(worker.process, SIGKILL);
        worker.range.end = worker.range.next;  // nobody's fault
      }
      if (!ended) continue;
      int status = 0;
      ::waitpid(worker.process, &status, 0);
      ::close(worker.pipe);
      worker.process = -1;
      if (worker.range.next < worker.range.end) {
        died(worker.range.next, howItDied(status, worker.hung));
        left.push_back({worker.range.next + 1, worker.range.end});
      }
      begin(worker);
    }
  }
}

Isolated runIsolated(const std::function<std::string()>& work, double seconds) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const auto process = fork();
  if (process < 0) throw std::runtime_error("no process");
  if (process == 0) {
    ::close(ends[0]);
    writeAll(ends[1], work());
    _exit(0);
  }
  ::close(ends[1]);
  Isolated result;
  const auto start = Clock::now();
  bool hung = false;
  for (;;) {
    pollfd file{ends[0], POLLIN, 0};
    ::poll(&file, 1, 100);
    if (file.revents != 0) {
      char bytes[65536];
      const auto n = ::read(ends[0], bytes, sizeof bytes);
      if (n <= 0) break;
      result.text.append(bytes, static_cast<std::size_t>(n));
    } else if (since(start) > seconds) {
      hung = true;
      ::kill(process, SIGKILL);
    }
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  ::close(ends[0]);
  if (status != 0) {
    result.died = true;
    result.text = howItDied(status, hung);
  }
  return result;
}

}  // namespace retrograd::fuzz
