#include "core/torch/checking/pinned.h"

#include <algorithm>

namespace retrograd {
namespace {

bool isBelowDouble(DType d) { return isDifferentiable(d) && d != DType::f64 && d != DType::c128 && itemSize(d) > 1; }

bool namesLessThanDouble(const Argument& argument) {
  if (argument.kind == Argument::Kind::dtype) return isBelowDouble(static_cast<DType>(argument.integer));
  return std::any_of(argument.items.begin(), argument.items.end(), namesLessThanDouble);
}

}  // namespace

std::optional<std::string> pinnedPrecision(const Analysis& asWritten, const Analysis& inDouble) {
  const auto& document = *asWritten.document;
  std::optional<std::string> found;
  for (std::size_t i = 0; i < document.boundSymbolCount() && !found; ++i) {  // bodies of higher-order ops included
    const BoundSymbolId op(static_cast<std::int64_t>(i));
    const auto& bound = document.boundSymbol(op);
    if (bound.origin.role != Role::none || bound.operandCount == 0) continue;
    for (const auto& argument : document.pattern(bound.pattern).arguments)
      if (namesLessThanDouble(argument)) found = document.opName(op);
  }
  const auto& doubles = *inDouble.document;
  for (const auto* trace : {&inDouble.forward, &inDouble.backward})
    for (auto op : trace->ops)
      for (auto output : doubles.outputs(op))
        if (!found && output && doubles.isTensor(output) && isBelowDouble(doubles.meta(output).dtype))
          found = doubles.opName(op);
  return found;
}

}  // namespace retrograd
