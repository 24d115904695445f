#pragma once
#include <ctime>
#include <fstream>

namespace retrograd::benchmarks {

/// Milliseconds of a clock: CLOCK_THREAD_CPUTIME_ID where the machine may do other work.
inline double milliseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

/// Memory of this process that is there, in 10^6 bytes.
inline double residentMegabytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096 / 1e6;
}

}  // namespace retrograd::benchmarks
