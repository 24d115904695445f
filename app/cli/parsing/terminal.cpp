#include "app/cli/parsing/terminal.h"
#include "core/base/enum_array.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace retrograd::cli {
namespace {

using Clock = std::chrono::steady_clock;

Terminal& state() {
  static Terminal terminal;
  return terminal;
}

Option addWhen(Parser parser, const std::string& name, Terminal::When& when, const std::string& help) {
  static const std::map<std::string, Terminal::When> names{
      {"auto", Terminal::When::automatic}, {"always", Terminal::When::always}, {"never", Terminal::When::never}};
  return parser.add(name, help, [&when](const std::string& text) { when = names.at(text); })
      .oneOf({"auto", "always", "never"});
}

bool applies(Terminal::When when, std::FILE* stream) {
  return when == Terminal::When::always || (when == Terminal::When::automatic && isatty(fileno(stream)));
}

bool isColored(std::FILE* stream) {
  const auto* plain = std::getenv("NO_COLOR");
  if (state().color == Terminal::When::automatic && plain && *plain) return false;
  return applies(state().color, stream);
}

/// The bar. Reports come from the working thread, drawing is done by a thread of its own, so that a stage that says
/// nothing for long still shows its time.
class Bar {
 public:
  Bar(bool isDrawn, bool isVerbose)
      : isDrawn_(isDrawn), isVerbose_(isVerbose), begin_(Clock::now()), stageBegin_(begin_) {
    if (isDrawn_) drawer_ = std::thread([this] { draw(); });
  }
  ~Bar() {
    {
      const std::lock_guard lock(mutex_);
      isOver_ = true;
      if (isVerbose_) tellStage();
    }
    wake_.notify_all();
    if (drawer_.joinable()) drawer_.join();
    clear();
  }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void at(std::string_view stage, double fraction) {
    // A process that was forked while the lock was held never gets it; it has no drawer either.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    if (stage != stage_) {
      if (isVerbose_) tellStage();
      stage_ = stage;
      stageBegin_ = Clock::now();
    }
    fraction_ = fraction;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    eraseLine();
  }

 private:
  static constexpr std::chrono::milliseconds first{1000}, each{100};

  static double secondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void tellStage() {
    if (stage_.empty()) return;
    eraseLine();
    std::fprintf(stderr, "%s: %.2f s\n", stage_.c_str(), secondsSince(stageBegin_));
  }

  void eraseLine() {
    if (!isShown_) return;
    std::fputs("\r\033[K", stderr);
    isShown_ = false;
  }

  void draw() {
    std::unique_lock lock(mutex_);
    for (auto next = begin_ + first; !wake_.wait_until(lock, next, [this] { return isOver_; });
         next = Clock::now() + each) {
      constexpr int cells = 24;
      const int filled = std::clamp(static_cast<int>(fraction_ * cells), 0, cells);
      const auto bar = std::string(static_cast<std::size_t>(filled), '#') +
                       std::string(static_cast<std::size_t>(cells - filled), '.');
      const auto line = fmt::format("\r[{}] {:>3.0f} %  {:.0f} s  {}\033[K", bar, std::clamp(fraction_, 0.0, 1.0) * 100,
                                    secondsSince(begin_), stage_.substr(0, 40));
      std::fputs(line.c_str(), stderr);
      std::fflush(stderr);
      isShown_ = true;
    }
  }

  const bool isDrawn_, isVerbose_;
  const Clock::time_point begin_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string stage_ = "starting";
  Clock::time_point stageBegin_;
  double fraction_ = 0;
  bool isOver_ = false, isShown_ = false;
  std::thread drawer_;
};

std::unique_ptr<Bar>& bar() {
  static std::unique_ptr<Bar> shown;
  return shown;
}

}  // namespace

const Terminal& terminal() { return state(); }

void addTerminal(Parser parser) {
  constexpr const char* group = "Output";
  const auto quiet =
      parser.flag("-q,--quiet", state().quiet, "print only errors and results: no notes, warnings or progress")
          .group(group);
  parser.flag("-v,--verbose", state().verbose, "print each stage of the work with its time")
      .group(group)
      .excludes(quiet);
  addWhen(parser, "--color", state().color, "color the output: auto (on a terminal), always or never").group(group);
  addWhen(parser, "--progress", state().progress,
          "show a bar for what takes over a second: auto (on a terminal), always or never")
      .group(group);
}

std::string styled(std::FILE* stream, Style style, std::string_view text) {
  if (!isColored(stream)) return std::string(text);
  static constexpr EnumArray<Style, const char*, 6> codes{"32", "1;31", "33", "32", "31", "1"};
  return fmt::format("\033[{}m{}\033[0m", codes[style], text);
}

ProgressDisplay::ProgressDisplay() {
  const bool isDrawn = !terminal().quiet && applies(terminal().progress, stderr);
  if (isDrawn || terminal().verbose) bar() = std::make_unique<Bar>(isDrawn, terminal().verbose);
}

ProgressDisplay::~ProgressDisplay() { bar().reset(); }

Progress::Report ProgressDisplay::report() const {
  if (!bar()) return {};
  return [](std::string_view stage, double fraction) {
    if (bar()) bar()->at(stage, fraction);
  };
}

void clearProgress() {
  if (bar()) bar()->clear();
}

}  // namespace retrograd::cli
