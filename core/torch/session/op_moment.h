#pragma once
// The values of an op as they were at it.
#include <ATen/core/ivalue.h>

#include <map>
#include <memory>
#include <string>

#include "core/derivation/analysis.h"
#include "core/stepping/moment.h"

namespace retrograd {

/// A value with its content, null where it has none; `reason`: why not, where no opaque op is the reason.
ValueState stateOf(const Analysis& analysis, ValueId value, const c10::IValue* content, std::string reason);

/// A Moment of tensors that nobody writes to any more.
class OpMoment : public Moment {
 public:
  std::shared_ptr<const Analysis> analysis;
  BoundSymbolId op;
  std::map<ValueId, c10::IValue> before, after;  ///< `after`: outputs, and operands that the op wrote
  std::string failure;                           ///< why there are no outputs

  bool writes(ValueId value) const override { return after.contains(value) && before.contains(value); }
  ValueState state(ValueId value, Side side) const override;
  TensorStatistics statistics(ValueId value, Side side) const override;
  TensorData contents(ValueId value, Side side) const override;
  std::vector<std::int64_t> histogram(ValueId value, Side side, int bins) const override;

 private:
  const c10::IValue* find(ValueId value, Side side) const;
  at::Tensor tensor(ValueId value, Side side) const;
};

}  // namespace retrograd
