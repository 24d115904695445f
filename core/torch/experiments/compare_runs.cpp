#include "core/torch/experiments/compare_runs.h"

#include <ATen/Context.h>

#include <map>

#include "core/questions/align_ops.h"
#include "core/questions/intended_infinities.h"
#include "core/torch/execution/device.h"

namespace retrograd {
namespace {

/// A run that can be advanced, holding the outputs of ops that the other has not asked for yet.
class Lane {
 public:
  /// `asked`: positions that will be taken.
  Lane(const Analysis& analysis, RecordOptions options, std::vector<char> asked) : asked_(std::move(asked)) {
    options.each = [this](std::size_t position, ValueId value, const TensorData& tensor) {
      if (started_ && asked_[position]) outputs_[position].emplace_back(value, tensor);
    };
    recording_ = std::make_unique<MeasuredRun>(analysis, std::move(options));
    started_ = true;
  }

  /// Outputs of the op at `position`, which is run up to if need be; taken, so that they are let go afterwards.
  std::vector<std::pair<ValueId, TensorData>> take(std::size_t position) {
    while (recording_->position() <= position) recording_->step();
    auto node = outputs_.extract(position);
    return node.empty() ? std::vector<std::pair<ValueId, TensorData>>() : std::move(node.mapped());
  }

 private:
  std::vector<char> asked_;
  bool started_ = false;
  std::map<std::size_t, std::vector<std::pair<ValueId, TensorData>>> outputs_;
  std::unique_ptr<MeasuredRun> recording_;
};

bool isOnGpu(const Analysis& a, const Analysis& b) {
  return a.device.type == Device::Type::cuda || b.device.type == Device::Type::cuda;
}

std::vector<std::string> notesOn(const Analysis& a, const Analysis& b) {
  if (!isOnGpu(a, b) || !(at::globalContext().allowTF32CuDNN() || at::globalContext().allowTF32CuBLAS())) return {};
  return {
      "TF32 is on, as in PyTorch by default; this comparison is made without it, so that it does not hide other "
      "differences"};
}

}  // namespace

RunComparison compareRuns(const Analysis& a, const Analysis& b, double tolerance, const RecordOptions& optionsB,
                          const Progress& progress) {
  const auto answers = alignOps(a, b);
  std::vector<char> met(b.joint.ops.size(), 0);
  for (const auto& answer : answers)
    if (answer) met[*answer] = 1;
  const auto notes = notesOn(a, b);  // before TF32 is off
  std::optional<FullPrecision> fullPrecision;
  if (isOnGpu(a, b)) fullPrecision.emplace();
  Lane laneA(a, {}, std::vector<char>(a.joint.ops.size(), 1)), laneB(b, optionsB, met);
  RunComparison result{.notes = notes};
  for (std::size_t i = 0; i < a.joint.ops.size(); ++i) {
    progress.at(a.document->opName(a.joint.ops[i]), static_cast<double>(i) / static_cast<double>(a.joint.ops.size()));
    const auto outputsA = laneA.take(i);
    const auto other = answers[i];
    if (!other) {
      result.onlyInA.push_back(a.joint.ops[i]);
      continue;
    }
    const auto outputsB = laneB.take(*other);
    if (leavesUninitialised(*a.document, a.joint.ops[i])) continue;
    for (std::size_t k = 0; k < std::min(outputsA.size(), outputsB.size()); ++k) {
      auto row = differenceOf(outputsA[k].second, outputsB[k].second);
      row.opA = a.joint.ops[i];
      row.opB = b.joint.ops[*other];
      row.valueA = outputsA[k].first;
      row.valueB = outputsB[k].first;
      result.largest = std::max(result.largest, row.relative);
      if (!result.firstDivergence && row.relative > tolerance) result.firstDivergence = result.rows.size();
      result.rows.push_back(std::move(row));
    }
  }
  for (std::size_t i = 0; i < met.size(); ++i)
    if (!met[i]) result.onlyInB.push_back(b.joint.ops[i]);
  return result;
}

}  // namespace retrograd
