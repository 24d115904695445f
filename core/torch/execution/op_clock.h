#pragma once
#include <memory>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// Times what runs between begin() and end(), one op after the other: on the CPU by the clock, on a GPU by events in
/// its stream, which are read when all is done there. Ops that follow each other share the event between them, and
/// events are used again once they were read.
class OpClock {
 public:
  explicit OpClock(Device device);
  ~OpClock();

  void begin();
  /// `seconds` is filled now, or by settle(), and must live until then.
  void end(double& seconds);
  /// Something else was asked of the GPU since end(), which the next op is not to be charged with.
  void interrupted();
  /// Waits for the GPU and fills what is still open.
  void settle();
  /// Forgets what is still open.
  void forget();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrograd
