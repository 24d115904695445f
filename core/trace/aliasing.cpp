#include "core/trace/aliasing.h"

#include <algorithm>
#include <array>

#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// Sizes that a view of these sizes and strides can take without copying (at::detail::computeStride, in short:
/// contiguous runs).
bool viewable(const TensorMeta& from, const TensorMeta& to) {
  std::int64_t step = 1;
  for (std::size_t i = from.sizes.size(); i-- > 0;) {
    if (from.sizes[i] == 1) continue;
    if (i >= from.strides.size() || from.strides[i] != step)
      return from.sizes == to.sizes && from.strides == to.strides;
    step *= from.sizes[i];
  }
  return true;
}

}  // namespace

bool sharesStorage(const Symbol& symbol, const TensorMeta& from, const TensorMeta& to) {
  if (!hasTrait(symbol.name, OpTrait::copiesAtNeed)) return true;
  if (from.dtype != to.dtype || from.device != to.device || from.offset != to.offset) return false;
  if (hasTrait(symbol.name, OpTrait::copiesOtherwise)) return from.strides == to.strides;
  return viewable(from, to);
}

ValueId aliasedOperand(const Document& document, const Symbol& symbol, const CallPattern& pattern,
                       std::span<const ValueId> operands, std::size_t returned) {
  if (returned >= symbol.returns.size()) return {};
  if (symbol.name == "aten._unsafe_view.default")  // a view of memory, though autograd is not to know
    return operands.empty() || !operands[0] || !document.isTensor(operands[0]) ? ValueId() : operands[0];
  if (symbol.returns[returned].aliasSet < 0) return {};
  ValueId first;
  for (std::size_t i = 0; i < symbol.arguments.size() && i < pattern.arguments.size() && !first; ++i) {
    if (symbol.arguments[i].aliasSet != symbol.returns[returned].aliasSet) continue;
    forEachOperand(pattern.arguments[i], [&](std::size_t hole) {
      if (!first && hole < operands.size() && operands[hole] && document.isTensor(operands[hole]))
        first = operands[hole];
    });
  }
  return first;
}

}  // namespace retrograd
