#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace retrograd::fuzz {

struct WorkerOptions {
  std::uint64_t count = 0;  ///< programs
  int jobs = 1;
  double seconds = 0;  ///< stop after so long; 0: never
  double hang = 30;    ///< a program that takes longer, of the processor, or ten times as long by the clock, is ended
};

/// Runs programs 0, 1, ... in processes of their own, so that one that crashes or hangs ends its process only. `work`
/// runs one in the worker and says in one line what came of it; `tell` gets each line in this process; `died` hears
/// of a program that took its process with it ("crashed: signal 11", "hung").
void runWorkers(const WorkerOptions& options, const std::function<std::string(std::uint64_t)>& work,
                const std::function<void(std::uint64_t, const std::string&)>& tell,
                const std::function<void(std::uint64_t, const std::string&)>& died);

/// Runs `work` in a process of its own; what it says, or nullopt-like "crashed: ..." / "hung" with `died` set.
struct Isolated {
  bool died = false;
  std::string text;
};
Isolated runIsolated(const std::function<std::string()>& work, double seconds);

}  // namespace retrograd::fuzz
