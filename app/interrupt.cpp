#include "app/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "app/cli/command.h"

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
  waiter_ = std::thread([this, set] {
    for (int signal = 0; sigwait(&set, &signal) == 0 && signal != SIGUSR1;) {
      if (stop_.stop_requested()) _exit(cli::cancelled);
      stop_.request_stop();
    }
  });
}

Interrupt::~Interrupt() {
  pthread_kill(waiter_.native_handle(), SIGUSR1);
  waiter_.join();
}

}  // namespace retrograd
