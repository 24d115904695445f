#pragma once
#include <optional>
#include <string>

#include "app/cli/parsing/options.h"
#include "core/trace/diff/diff_text.h"

namespace retrograd::cli {

struct DiffPassesOptions {
  std::string path, compile;  ///< "0/0"; empty: the first
  std::optional<std::int64_t> rank;
  std::string pass;    ///< whose difference to the one before is printed; empty: the list of passes
  std::string follow;  ///< the value whose op is followed through the passes
  std::string format = "text";
  bool sideBySide = false;
  DiffTextOptions text;
};

/// Prints a difference as the options of `diff` say. Returns the exit code.
int printDiff(const TraceDiff& diff, const DiffTextOptions& text, const std::string& format, bool sideBySide);

/// Prints the graphs of a compile as a chain of passes, with what each changed; or one of these differences. Returns
/// the exit code. Throws Error(badUse) where there is no such compile, pass or value, Error(badInput) where the graphs
/// to compare cannot be read.
int printPasses(const DiffPassesOptions& options, const Progress& progress);

}  // namespace retrograd::cli
