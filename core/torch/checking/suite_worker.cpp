// The worker process of a suite: a case that crashes or hangs ends the worker, never the suite.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <deque>

#include "core/process/child.h"
#include "core/torch/checking/suite.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd {
namespace {

using Clock = std::chrono::steady_clock;

Report checkCase(const SuiteCase& suiteCase, const SuiteOptions& options) {
  const auto start = Clock::now();
  Report report;
  try {
    report = options.check ? options.check(suiteCase) : checkModel(suiteCase.model, suiteCase.options);
  } catch (const std::exception& error) {
    report = reportOfError({}, messageOf(error));
  } catch (...) {
    report = reportOfError({}, "an unknown exception");
  }
  report.subject = suiteCase.name;
  report.details["seconds"] = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

bool writeAll(int to, std::string_view text) {
  while (!text.empty()) {
    const auto n = write(to, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

/// Body of the worker: one line of JSON a case.
int work(int to, const std::vector<SuiteCase>& cases, std::size_t first, const SuiteOptions& options) {
  setThreads(options.threads);
  for (std::size_t i = first; i < cases.size(); ++i) {
    const auto report = checkCase(cases[i], options);
    const auto json = toJson(report, decide(report));
    if (!writeAll(to, json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n")) break;
  }
  return 0;
}

class Worker {
 public:
  Worker(const std::vector<SuiteCase>& cases, std::size_t first, const SuiteOptions& options)
      : limit_(options.caseSeconds),
        child_([&](int to) { return work(to, cases, first, options); }, {.endsWithThread = true}),
        reader_(child_.output(), [this](std::string_view line) { lines_.emplace_back(line); }, longestReport) {}

  /// The next report; nullopt when the worker has ended or took too long (then `why()` says how). Throws
  /// Error(cancelled).
  std::optional<Report> next(const Progress& progress) {
    const auto start = Clock::now();
    while (lines_.empty()) {
      if (progress.stopRequested()) child_.kill();
      progress.check();
      if (std::chrono::duration<double>(Clock::now() - start).count() > limit_) {
        child_.kill();
        why_ = fmt::format("took longer than {:.0f} s", limit_);
        return std::nullopt;
      }
      if (!reader_.open()) {
        const auto ending = child_.await(std::chrono::duration<double>(limit_), progress);
        why_ = ending ? ending->text() : fmt::format("took longer than {:.0f} s", limit_);
        return std::nullopt;
      }
      pollfd waiting{reader_.handle(), POLLIN, 0};
      if (poll(&waiting, 1, 100) > 0) reader_.read();
    }
    const auto line = std::move(lines_.front());
    lines_.pop_front();
    return reportFromJson(nlohmann::ordered_json::parse(line));
  }
  const std::string& why() const { return why_; }

 private:
  static constexpr std::size_t longestReport = std::size_t{64} << 20;

  double limit_;
  std::deque<std::string> lines_;
  Child child_;
  LineReader reader_;
  std::string why_;
};

}  // namespace

std::vector<Report> checkSuite(const std::vector<SuiteCase>& cases, const SuiteOptions& options,
                               const std::function<void(const Report&)>& done, const Progress& progress) {
  std::vector<Report> reports;
  while (reports.size() < cases.size()) {
    Worker worker(cases, reports.size(), options);
    while (reports.size() < cases.size()) {
      auto report = worker.next(progress);
      const bool ended = !report;
      reports.push_back(ended ? reportOfError(cases[reports.size()].name, worker.why()) : std::move(*report));
      if (done) done(reports.back());
      progress.at("check", static_cast<double>(reports.size()) / static_cast<double>(cases.size()));
      if (ended) break;
    }
  }
  return reports;
}

}  // namespace retrograd
