#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"

namespace retrograd {

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> command;         ///< program and arguments, the same for each rank
  std::chrono::milliseconds grace{10'000};  ///< for the others to end by themselves, after one has failed
  /// Called with each line that a rank writes, without its end. Default: to the same stream of this process, "[rank 1]
  /// " before it.
  std::function<void(int rank, bool isError, std::string_view line)> onLine;
};

/// How the ranks ended.
struct LaunchResult {
  int exitCode = 0;  ///< of the rank that failed first, 128 + the signal for one that was killed; 0 where none failed
  int failedRank = -1;
  std::string failure;  ///< "rank 1 was killed (Killed)"; empty where none failed
};

/// Runs the command once for each rank on this machine, with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
/// (a free port) in its environment. When one fails, the others have `grace` to report it before they are ended. They
/// end with this process, too. Throws Error(io) where processes cannot be started; Error(cancelled), after ending them,
/// on a stop request.
LaunchResult launchRanks(const LaunchOptions& options, const Progress& progress = {});

}  // namespace retrograd
