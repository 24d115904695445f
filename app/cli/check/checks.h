#pragma once
#include <string>
#include <vector>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "core/torch/checking/suite.h"

namespace retrograd::cli {

/// What `check` and `pipeline check` are asked: one file or a suite, and how to compare.
struct Checks {
  std::vector<std::string> files;
  std::string fill, suite, format = "text", report;
  CheckOptions check;
  SuiteOptions run;
  bool allowSkips = false;  ///< a file that could not be checked does not change the exit code

  /// The options that both have. `referenceHelp`: what --reference is for.
  void addTo(Parser parser, const std::string& referenceHelp);
  /// Throws Error(badUse) where neither a file nor a suite is named. `command`: as the user types it.
  void requireFileOrSuite(const std::string& command) const;
  /// The cases of the suite, with the options that were given for all of them. Throws Error(badUse) for a reference,
  /// which each case has of its own.
  std::vector<SuiteCase> cases() const;
  /// Prints each report as it comes, where text is asked for.
  void print(const Report& report) const;
  /// Prints and writes all that was found; the exit code that follows from it.
  int conclude(const std::vector<Report>& reports) const;
};

}  // namespace retrograd::cli
