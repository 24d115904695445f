#pragma once
#include <ATen/core/Tensor.h>

#include <map>

#include "core/derivation/analysis.h"
#include "core/torch/execution/evaluator.h"
#include "core/trace/last_use.h"

namespace retrograd {

/// How far two tensors are apart, as differenceOf() of their data.
struct RunDifference;
RunDifference differenceOf(const at::Tensor& a, const at::Tensor& b);

/// One of two runs that go in step: the joint of an analysis, op by op.
class Lane {
 public:
  /// `replaced`: as RecordOptions.
  explicit Lane(const Analysis& analysis, std::map<ValueId, TensorData> replaced = {});

  std::size_t position() const { return position_; }
  std::size_t size() const { return analysis_.joint.ops.size(); }
  BoundSymbolId op(std::size_t position) const { return analysis_.joint.ops[position]; }
  /// Runs the next op. What is used for the last time by it stays until the step after.
  void step();
  /// What the value holds now, whatever later ops write there; undefined for what is no tensor.
  at::Tensor keep(ValueId value) const;

 private:
  void replace(ValueId value);

  const Analysis& analysis_;
  std::map<ValueId, TensorData> replaced_;
  Evaluator evaluator_;
  LastUses lastUses_;
  IdVector<StorageId, std::int64_t> lastWrite_;
  std::size_t position_ = 0;
};

}  // namespace retrograd
