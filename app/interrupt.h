#pragma once
#include <stop_token>
#include <thread>

namespace retrograd {

/// Turns Ctrl+C (and SIGTERM) into a stop request while it lives; a second one ends the program at once. Where a
/// command of the debugger's prompt runs, the first Ctrl+C stops that command alone. Made before other threads start,
/// so that they inherit the blocked signals and the one waiting thread gets them.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::thread waiter_;
};

}  // namespace retrograd
