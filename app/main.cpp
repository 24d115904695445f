// The program: everything but what its front answers (front.cpp).
#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "app/cli/parsing/program.h"
#include "app/cli/parsing/terminal.h"
#include "app/cli/run/prompt.h"
#include "app/command_line.h"
#include "core/base/error.h"
#include "core/torch/grad/library.h"
#include "core/torch/reading/probe.h"
#include "core/torch/script/script.h"
#if RETROGRAD_GUI
#include "views/window/app_window.h"
#endif

namespace retrograd {
namespace {

constexpr const char* headless = "these need none: trace, check, run, bench (see retrograd help)";

[[maybe_unused]] bool hasDisplay() {
  for (const char* variable : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
    if (const char* value = std::getenv(variable); value && *value) return true;
  return false;
}

/// Opens the window with the files that are named and runs it to its end. Throws Error(badUse) where there is no
/// display or the program was built without the window, naming the subcommands that need none.
int showWindow([[maybe_unused]] int& argc, [[maybe_unused]] char** argv, [[maybe_unused]] const CommandLine& line) {
#if RETROGRAD_GUI
  if (!hasDisplay()) badUse(std::string("there is no display (DISPLAY, WAYLAND_DISPLAY) for the window; ") + headless);
  return runWindow(argc, argv, line.files, line.rules);
#else
  badUse(std::string("this build has no window; ") + headless);
#endif
}

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);  // ends the waiting thread
  return set;
}

/// Turns Ctrl+C (and SIGTERM) into a stop request while it lives; a second one ends the program at once. Where a
/// command of the debugger's prompt runs, the first Ctrl+C stops that command alone. Made before other threads start,
/// so that they inherit the blocked signals and the one waiting thread gets them.
class Interrupt {
 public:
  Interrupt() {
    const auto set = watched();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    try {
      waiter_ = std::thread([this, set] {
        for (int signal = 0; sigwait(&set, &signal) == 0 && signal != SIGUSR1;) {
          const bool isForCommand = cli::stopCommand();
          if (isForCommand && signal == SIGINT) continue;
          if (stop_.stop_requested()) _exit(cli::cancelled);
          stop_.request_stop();
          cli::leavePrompt();
        }
      });
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::internal,
                  fmt::format("the thread that waits for Ctrl+C cannot be started: {}", error.code().message()));
    }
  }
  ~Interrupt() {
    pthread_kill(waiter_.native_handle(), SIGUSR1);
    waiter_.join();
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::thread waiter_;
};

int go(int& argc, char** argv, const CommandLine& line) {
  if (!line.subcommand) return showWindow(argc, argv, line);
  cli::requireOtherFiles(line.parser);
  const Interrupt interrupt;
  const cli::ProgressDisplay display;
  return (*line.run)(Progress(interrupt.token(), display.report()));
}

}  // namespace
}  // namespace retrograd

int main(int argc, char** argv) {
  using namespace retrograd;
  // Without the C library's lists of small free pieces: traces hold millions of these, and whenever a large piece is
  // freed the library walks the lists, which took a quarter of the time that a trace of 100,000 ops needs to open.
  mallopt(M_MXFAST, 0);
  setProbeCommand({"/proc/self/exe", "probe-torchscript"});
  static constexpr cli::ProgramFunctions functions{loadLibrary, DebugScript::commands};
  cli::setProgram(functions);
  const int code = runCommandLine(argc, argv, [&](const CommandLine& line) { return go(argc, argv, line); });
  // All files are closed and standard output is flushed. Destructors of static objects, LibTorch's above all, have
  // nothing to add, and where memory ran short some of them crash: a run that did its work, or said why not, would end
  // by a signal.
  std::_Exit(code);
}
