#include "core/torch/grad/zero_tensors.h"

#include <algorithm>

namespace retrograd {

bool ZeroTensors::outlives(const RuleOp& op, std::span<const ValueId> locals) {
  if (!op.zeroTensor && values_.empty()) return false;
  const auto isZero = [&](std::int32_t local) { return values_.contains(locals[static_cast<std::size_t>(local)].index); };
  const auto note = [&] {
    for (auto output : op.outputs)
      if (output >= 0) values_.insert(locals[static_cast<std::size_t>(output)].index);
  };
  if (op.zeroTensor) return note(), false;
  if (op.operands.empty()) return false;
  const std::string_view name = document_.symbol(op.symbol).name;
  const bool product = name == "aten.mul.Tensor", quotient = name == "aten.div.Tensor";
  const bool stays = product ? std::any_of(op.operands.begin(), op.operands.end(), isZero)
                             : (quotient || name == "aten.clone.default" || (op.effects & effect::view)) && isZero(op.operands.front());
  if (stays) note();
  return stays && (product || quotient);
}

}  // namespace retrograd
