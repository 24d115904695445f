#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/id_vector.h"
#include "core/derivation/analysis.h"
#include "core/torch/session/run_follower.h"
#include "core/torch/steps/op_derivatives.h"

namespace retrograd {

struct StepRecording;

/// One call of backward in a recording: positions among the joint's ops.
struct BackwardSpan {
  std::int32_t number = 0;
  std::size_t begin = 0, last = 0;
};

/// Keeps what ops of a step read and made, as it was when they ran, until the backward that belongs to them is over.
class StepValues final : public RunFollower {
 public:
  /// `over`: a backward has ended.
  StepValues(const Analysis& analysis, std::function<void(const BackwardSpan&)> over);

  /// Null: not kept.
  const OpTensors* at(std::size_t position) const { return kept_[position].get(); }
  /// Positions in (after, until] at which an op writes this memory.
  std::span<const std::size_t> writesWithin(StorageId storage, std::size_t after, std::size_t until) const;

  void ran(std::size_t position, const Evaluator& evaluator, const OpMeasure&) override;

 private:
  void findSpans();
  void findUntil();
  void keepWhatIsRead();
  std::vector<ValueId> returnedWrites(BoundSymbolId op) const;
  void keepBefore(std::size_t position, const Evaluator& evaluator);
  void keep(std::size_t position, const Evaluator& evaluator);
  at::Tensor now(ValueId id, std::size_t position, const Evaluator& evaluator) const;

  const Analysis& analysis_;
  const Document& document_;
  const StepRecording& recording_;
  std::function<void(const BackwardSpan&)> over_;
  std::vector<BackwardSpan> spans_;
  std::vector<std::size_t> until_;  ///< by position: the last position that may ask for it; 0: nobody
  IdVector<StorageId, std::vector<std::size_t>> writes_;
  std::vector<std::unique_ptr<OpTensors>> kept_;
  std::size_t nextSpan_ = 0;
};

}  // namespace retrograd
