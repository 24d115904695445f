#include "core/questions/align_ops.h"

#include <algorithm>

#include "core/formats/recording/recording.h"

namespace retrograd {
namespace {

/// Forward and loss are one: where the loss begins is a guess. So is what belongs to the backward.
int sectionOf(Phase phase) {
  switch (phase) {
    case Phase::forward:
    case Phase::loss:
    case Phase::other: return 0;
    case Phase::backward:
    case Phase::recompute:
    case Phase::hook:
    case Phase::accumulation: return 1;
    case Phase::clip:
    case Phase::optimizer: return 2;
  }
  return 0;
}

std::shared_ptr<const std::vector<std::int32_t>> partsOf(const Analysis& analysis) {
  const auto& recording = analysis.file.recording;
  if (!recording) return nullptr;
  auto parts = std::make_shared<std::vector<std::int32_t>>();
  parts->reserve(recording->ops.size());
  for (const auto& op : recording->ops)
    parts->push_back(((op.step + 1) * 4096 + std::min(op.backward + 1, 4095)) * 4 + sectionOf(op.phase));
  return parts;
}

}  // namespace

DiffSide diffSide(const Analysis& analysis, const Trace& trace) {
  return {analysis.document.get(), &trace, &analysis.computation().trace,
          analysis.derived() ? &analysis.joint : nullptr, partsOf(analysis)};
}

std::vector<std::optional<std::size_t>> alignOps(const Analysis& a, const Analysis& b) {
  const OpPairs pairs(diffSide(a, a.joint), diffSide(b, b.joint));
  IdVector<BoundSymbolId, std::int64_t> place(b.document->boundSymbolCount(), -1);
  for (std::size_t i = 0; i < b.joint.ops.size(); ++i) place[b.joint.ops[i]] = static_cast<std::int64_t>(i);
  std::vector<std::optional<std::size_t>> answers;
  for (const auto op : a.joint.ops) {
    const auto other = pairs.partner(Side::left, op);
    answers.push_back(other && place[other] >= 0 ? std::optional(static_cast<std::size_t>(place[other]))
                                                 : std::nullopt);
  }
  return answers;
}

}  // namespace retrograd
