#pragma once
#include <memory>
#include <string>

#include "core/base/progress.h"

namespace retrograd {
struct Analysis;
}

namespace retrograd::cli {

struct RecordingChecks {
  std::string format = "text";
  bool strict = false;  ///< every cut is a fault
  std::string against;  ///< a recording that is right, whose cuts are meant; of ranks: of one process on the whole
                        ///< batch; empty: none
};

/// The recording that --against names; null without it. Throws Error(badUse) for what is no recording, else as
/// openModel().
std::shared_ptr<const Analysis> openAgainst(const RecordingChecks& checks, const Progress& progress);

/// `check` of a recording: runs its ops again, compares each hash, derives the gradient of each op and compares it with
/// the recorded one, judges health, and prints the verdict as text or JSON (docs/report.schema.json). The exit
/// code: 0 where all agree and the step is sound, 1 for a fault, 2 where not all could be compared. Throws as
/// readRecording().
int checkRecording(const std::string& path, const RecordingChecks& checks, const Progress& progress);

}  // namespace retrograd::cli
