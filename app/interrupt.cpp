#include "app/interrupt.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <system_error>

#include "app/cli/parsing/command.h"
#include "app/cli/run/prompt.h"
#include "core/base/error.h"

namespace retrograd {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);  // ends the waiting thread
  return set;
}

}  // namespace

Interrupt::Interrupt() {
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

Interrupt::~Interrupt() {
  pthread_kill(waiter_.native_handle(), SIGUSR1);
  waiter_.join();
}

}  // namespace retrograd
