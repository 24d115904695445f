#include "core/split/partition.h"

#include <algorithm>

#include "core/split/min_cut.h"
#include "core/split/recompute.h"
#include "core/trace/dead_code.h"

namespace retrograd {
namespace {

bool anyMarked(const OpMarks& marks) {
  return std::any_of(marks.begin(), marks.end(), [](char mark) { return mark != 0; });
}

/// What the pass was asked for and what came of it, into the record of the recomputation.
void describe(PassRecord& record, const PartitionOptions& options, const SavedBytes& before, const SavedBytes& after) {
  const bool cut = options.kind == PartitionOptions::minCut || options.budget;
  record.parameters.emplace_back("partition", cut ? "min-cut" : "default");
  if (options.budget) record.parameters.emplace_back("budget", std::to_string(*options.budget));
  for (const auto& what : options.recompute) record.parameters.emplace_back("recompute", what);
  record.parameters.emplace_back("saved bytes before", std::to_string(before.storages));
  record.parameters.emplace_back("saved bytes", std::to_string(after.storages));
}

}  // namespace

PartitionResult partition(Document& document, const Trace& joint, const PartitionOptions& options) {
  PartitionResult result{joint, {}};
  auto marks = markedForRecomputation(document, joint, options.recompute, options.regions);
  const bool cut = options.kind == PartitionOptions::minCut || options.budget;
  if (!cut && !anyMarked(marks)) return result;
  const auto before = savedBytes(document, joint);
  bool asked = anyMarked(marks);
  if (cut) {
    const Dataflow dataflow(document, joint);
    auto required = marks;
    const auto taken = restrictToRecomputable(document, joint, dataflow, required);
    asked = anyMarked(required);
    marks = chooseSaved(document, joint, dataflow, required, options.budget).recomputeOp;
    for (auto op : taken.ids()) marks[op] |= taken[op];  // so that recompute() says why it did not follow them
  }
  const auto recomputed = recompute(document, joint, marks, &result.problems);
  const auto after = savedBytes(document, recomputed);
  if (!asked && after.storages > before.storages) return result;
  result.joint = eliminateDeadCode(document, recomputed);
  describe(result.joint.history[joint.history.size()], options, before, after);
  return result;
}

}  // namespace retrograd
