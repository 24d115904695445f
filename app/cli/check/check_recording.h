#pragma once
#include <string>

#include "core/base/progress.h"

namespace retrograd::cli {

struct RecordingChecks {
  std::string format = "text";
  bool strict = false;  ///< every cut is a fault
  std::string against;  ///< a recording that is right, whose cuts are meant; empty: none
};

/// `check` of a recording: runs its ops again, compares each hash, derives the gradient of each op and compares it with
/// the recorded one, judges health, and prints the verdict as text or JSON (docs/report.schema.json). The exit
/// code: 0 where all agree and the step is sound, 1 for a fault, 2 where not all could be compared. Throws as
/// readRecording().
int checkRecording(const std::string& path, const RecordingChecks& checks, const Progress& progress);

}  // namespace retrograd::cli
