#pragma once
// Gradients that are zero whatever their factors hold. Only the .cpp files of grad/ include this.
#include <algorithm>
#include <span>
#include <unordered_set>

#include "core/torch/grad/rule.h"

namespace retrograd {

/// The gradients that eager PyTorch keeps as ZeroTensors. A formula that knows its gradient to be zero (that of sgn)
/// makes one, without memory, and a product with it, a quotient of it, a view and a copy are ZeroTensors again,
/// whatever the other factor holds: NaN there goes no further. Any other op reads zeros.
class ZeroTensors {
 public:
  explicit ZeroTensors(const Document& document) : document_(document) {}

  /// Notes what the op of a backward makes of them. True where its result has to be made zero, as its operands may say
  /// NaN.
  bool noteAndForcesZero(const RuleOp& op, std::span<const ValueId> locals);

 private:
  const Document& document_;
  std::unordered_set<std::int32_t> values_;
};

inline bool ZeroTensors::noteAndForcesZero(const RuleOp& op, std::span<const ValueId> locals) {
  if (!op.zeroTensor && values_.empty()) return false;
  const auto isZero = [&](std::int32_t local) { return values_.contains(locals[local].index); };
  const auto note = [&] {
    for (auto output : op.outputs)
      if (output >= 0) values_.insert(locals[output].index);
  };
  if (op.zeroTensor) {
    note();
    return false;
  }
  if (op.operands.empty()) return false;
  const std::string_view name = document_.symbol(op.symbol).name;
  const bool product = name == "aten.mul.Tensor", quotient = name == "aten.div.Tensor";
  const bool stays = product ? std::ranges::any_of(op.operands, isZero)
                             : (quotient || name == "aten.clone.default" || (op.effects & effect::view)) &&
                                   isZero(op.operands.front());
  if (stays) note();
  return stays && (product || quotient);
}

}  // namespace retrograd
