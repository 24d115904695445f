// The worker process of a suite: a case that crashes or hangs ends the worker, never the suite.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "core/checking/suite.h"
#include "core/checking/threads.h"

namespace retrograd {
namespace {

using Clock = std::chrono::steady_clock;

CheckReport failed(const SuiteCase& suiteCase, std::string reason) {
  CheckReport report;
  report.name = suiteCase.name;
  report.status = CheckStatus::error;
  report.reason = std::move(reason);
  return report;
}

CheckReport checkCase(const SuiteCase& suiteCase, const SuiteOptions& options) {
  const auto start = Clock::now();
  CheckReport report;
  try {
    report = options.check ? options.check(suiteCase) : checkModel(suiteCase.model, suiteCase.options);
  } catch (const std::exception& error) {
    report = failed(suiteCase, messageOf(error));
  } catch (...) {
    report = failed(suiteCase, "an unknown exception");
  }
  report.name = suiteCase.name;
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

bool writeAll(int to, std::string_view text) {
  while (!text.empty()) {
    const auto n = write(to, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// Body of the worker: one line of JSON a case. Never returns.
[[noreturn]] void work(int to, const std::vector<SuiteCase>& cases, std::size_t first, const SuiteOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a worker does not outlive its suite
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setThreads(options.threads);
  for (std::size_t i = first; i < cases.size(); ++i) {
    const auto json = toJson(checkCase(cases[i], options));
    if (!writeAll(to, json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n")) break;
  }
  _exit(0);  // no destructors: they belong to the parent
}

class Worker {
 public:
  Worker(const std::vector<SuiteCase>& cases, std::size_t first, const SuiteOptions& options) : limit_(options.caseSeconds) {
    int ends[2];
    if (pipe(ends) != 0) throw Error(ErrorCode::io, fmt::format("pipe: {}", strerror(errno)));
    process_ = fork();
    if (process_ < 0) throw Error(ErrorCode::io, fmt::format("fork: {}", strerror(errno)));
    if (process_ == 0) {
      close(ends[0]);
      work(ends[1], cases, first, options);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  ~Worker() {
    if (process_ > 0) end();
    close(from_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The next report; nullopt when the worker has ended or took too long (then `why()` says how). Throws Error(cancelled).
  std::optional<CheckReport> next(const Progress& progress) {
    const auto start = Clock::now();
    while (buffer_.find('\n') == std::string::npos) {
      if (progress.stopRequested()) {
        end();
        progress.check();
      }
      if (std::chrono::duration<double>(Clock::now() - start).count() > limit_) {
        end();
        why_ = fmt::format("took longer than {:.0f} s", limit_);
        return std::nullopt;
      }
      if (!receive()) {
        why_ = status();
        return std::nullopt;
      }
    }
    const auto line = buffer_.substr(0, buffer_.find('\n'));
    buffer_.erase(0, line.size() + 1);
    return reportFromJson(nlohmann::ordered_json::parse(line));
  }
  const std::string& why() const { return why_; }

 private:
  /// Waits a moment for more; false at the end of what the worker writes.
  bool receive() {
    pollfd waiting{from_, POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) return true;
    char chunk[4096];
    const auto n = read(from_, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    buffer_.append(chunk, static_cast<std::size_t>(n));
    return true;
  }

  std::string status() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    if (WIFSIGNALED(status)) return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }

  void end() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  double limit_;
  pid_t process_ = -1;
  int from_ = -1;
  std::string buffer_, why_;
};

}  // namespace

std::vector<CheckReport> checkSuite(const std::vector<SuiteCase>& cases, const SuiteOptions& options,
                                    const std::function<void(const CheckReport&)>& done, const Progress& progress) {
  std::vector<CheckReport> reports;
  while (reports.size() < cases.size()) {
    Worker worker(cases, reports.size(), options);
    while (reports.size() < cases.size()) {
      auto report = worker.next(progress);
      const bool ended = !report;
      reports.push_back(ended ? failed(cases[reports.size()], worker.why()) : std::move(*report));
      if (done) done(reports.back());
      progress.at("check", static_cast<double>(reports.size()) / static_cast<double>(cases.size()));
      if (ended) break;
    }
  }
  return reports;
}

}  // namespace retrograd
