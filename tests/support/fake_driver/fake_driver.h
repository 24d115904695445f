#pragma once
// A stand-in for NVIDIA's driver (libcuda.so.1), for tests of what a run asks of a GPU and in which order. It has the
// functions of cuda/driver.h and no others. Its GPU's memory is the host's: kernels run as their twins, at once; copies
// to the host come to pass when somebody waits, events too. What a driver would not forgive is kept as a fault: memory
// that was freed or never allocated, an event or a function that is not there, a time between events that were not
// reached, a kernel whose scratch memory is not as the one before left it, a call without a context.
#include <memory>
#include <string>
#include <vector>

#include "core/torch/execution/cuda/driver.h"

namespace retrograd::test {

/// Calls since reset().
struct DriverCounts {
  int allocations = 0, frees = 0, fills = 0, copies = 0, launches = 0, synchronisations = 0;
  int eventsMade = 0, eventsRecorded = 0, eventsDestroyed = 0, eventWaits = 0;
  int rows = 0;           ///< tensors that launches of summarise_DTYPE had
  int libTorchWaits = 0;  ///< waits of LibTorch's stand-in (played_gpu)
};

/// driver() is the stand-in while it lives.
class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  void reset();
  DriverCounts counts() const;
  /// Names of the calls since reset(), in their order, without those that only look.
  std::vector<std::string> calls() const;
  /// What a driver would not have forgiven, since reset().
  std::vector<std::string> faults() const;
  /// The next call of a function ("cuLaunchKernel") returns this code and does nothing.
  void failNext(const char* function, int code);

  const cuda::Driver& driver() const;

 private:
  std::unique_ptr<cuda::DriverInPlace> inPlace_;
};

}  // namespace retrograd::test
