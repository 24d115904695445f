#pragma once
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/formats/recording/recording.h"

namespace retrograd::cli {

struct RecordingListing {
  std::string phase;         ///< only ops of this one; empty: all
  std::vector<char> passes;  ///< by op: whether it passes a filter; empty: all do
  bool source = true;        ///< modules and lines where they change
  bool ids = false;          ///< the id of each op
};

/// Prints the ops of a recording in the order in which they ran, with a heading where step or phase change.
void printRecording(const Analysis& analysis, const RecordingListing& options);

}  // namespace retrograd::cli
