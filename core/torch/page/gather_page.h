#pragma once
#include <memory>

#include "core/formats/memory/snapshot.h"
#include "core/page/page.h"
#include "core/torch/opening/open_request.h"
#include "core/torch/steps/optimizer_updates.h"

namespace retrograd {

/// A page with what it shows.
struct GatheredPage {
  Page page;
  std::shared_ptr<const Analysis> analysis;  ///< null: the subject has no ops
  std::unique_ptr<const RunRecord> values;   ///< null: it was not run
};

/// All that there is to say of a model, a recorded step, a job's log, or a snapshot of CUDA's allocator: judges it,
/// runs it for the numbers of its values unless `run` is false, and asks what held memory. What one of these cannot
/// have, and why, is among the notes of the page. `strict`: suspicions fail, too. Throws Error for a file that cannot
/// be read, Error(cancelled).
GatheredPage gatherPage(const OpenRequest& request, bool run, bool strict, const Progress& progress = {});

/// The snapshot at this path; null where it is something else. Throws Error(cancelled), Error(io).
std::shared_ptr<const MemorySnapshot> snapshotAt(const std::string& path, const Progress& progress = {});

/// What was judged, and what else its run showed.
struct JudgedFile {
  Report report;
  OptimizerUpdates updates;  ///< of a recorded step
};
/// Judges what was opened with a request, by what it is. What keeps it from being judged is in the report. Throws
/// Error(cancelled).
JudgedFile judgeOpened(const OpenRequest& request, const std::shared_ptr<const Analysis>& analysis,
                       const Progress& progress = {});

}  // namespace retrograd
