#pragma once
#include <optional>
#include <string>

#include "app/cli/command.h"

namespace retrograd::cli {

/// What `check LOG` is asked beside the file: which compile, and the values that flow in.
struct LogCheck {
  std::string compile, weights, batch;
  std::optional<std::int64_t> rank;
  bool useWhatBinds = false;

  void addTo(CLI::App& app);
  /// Whether any of it was given, which makes sense for a log only.
  bool given() const { return !compile.empty() || rank; }
};

/// Prints the second opinion on a compile of a log (docs/jobs.md). Exit code 0: every gradient was compared by value and agrees; 1:
/// something differs; 2: not possible.
int checkLog(const std::string& path, const LogCheck& options, const std::string& reference, std::uint64_t seed, const std::string& format,
             const Progress& progress);

}  // namespace retrograd::cli
