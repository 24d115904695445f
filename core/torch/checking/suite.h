#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/torch/checking/check.h"

namespace retrograd {

/// A model of a suite with what its folder says of it.
struct SuiteCase {
  std::string name;  ///< folder, for model.pt2; folder/core for core.pt2
  std::string model;
  CheckOptions options;  ///< reference next to it, draws of manifest.json
};

/// Every .pt2 in `folder` and the folders under it, by name. Throws Error(badUse) where there is no such folder or no
/// case in it.
std::vector<SuiteCase> findCases(const std::string& folder);

struct SuiteOptions {
  double caseSeconds = 300;  ///< a case that takes longer is ended and a fault
  int threads = 0;
  /// What a case is checked with; checkModel where empty. Runs in the worker.
  std::function<Report(const SuiteCase&)> check;
};

/// Checks all cases in order; `done` gets each report as it comes. The cases run in one worker process; when a case
/// crashes it, hangs or throws, its report is one of reportOfError() that names the signal, and a new worker goes on
/// with the next. Must be called before this process has used LibTorch's threads. Throws Error(cancelled).
std::vector<Report> checkSuite(const std::vector<SuiteCase>& cases, const SuiteOptions& options,
                               const std::function<void(const Report&)>& done, const Progress& progress = {});

}  // namespace retrograd
