#pragma once
// Only the .cpp files of grad/ include this.
#include <span>
#include <unordered_set>

#include "core/torch/grad/rule.h"

namespace retrograd {

/// The gradients that eager PyTorch keeps as ZeroTensors. A formula that knows its gradient to be zero (that of sgn) makes one, without memory, and a product
/// with it, a quotient of it, a view and a copy are ZeroTensors again, whatever the other factor holds: NaN there goes no further. Any other op reads zeros.
class ZeroTensors {
 public:
  explicit ZeroTensors(const Document& document) : document_(document) {}

  /// Notes what the op of a backward makes of them. True where its result is zero though its operands may say NaN.
  bool outlives(const RuleOp& op, std::span<const ValueId> locals);

 private:
  const Document& document_;
  std::unordered_set<std::int32_t> values_;
};

}  // namespace retrograd
