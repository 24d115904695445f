#pragma once
#include <string>

#include "core/base/progress.h"

namespace retrograd::cli {

/// `check` of a recording: runs its ops again, compares each hash, judges health, and prints the verdict as text or
/// JSON (docs/check-recording.schema.json). The exit code: 0 where all hashes are the recorded ones and the step is
/// sound, 1 where one differs or the step is not sound, 2 where not all could be compared. Throws as readRecording().
int checkRecording(const std::string& path, const std::string& format, const Progress& progress);

}  // namespace retrograd::cli
