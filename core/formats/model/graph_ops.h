#pragma once
#include <string>
#include <string_view>

#include "core/trace/symbol.h"

namespace retrograd {

/// The symbol of an op as a graph names it ("torch.ops.aten.mm.default", "_operator.add",
/// "torch.ops.higher_order.cond"): with LibTorch's schema where `lookup` gives one; not known where neither LibTorch
/// nor we have it.
Symbol resolveSymbol(std::string_view target, const SymbolLookup& lookup);

/// The same for a call in a text, where torch.fx and people may leave the overload out: "torch.ops.aten.relu" is then
/// "torch.ops.aten.relu.default", where there is such an op.
Symbol resolveCall(std::string_view target, const SymbolLookup& lookup);

/// Whether an op has no overload behind its name: "torch.ops.aten.relu".
bool lacksOverload(std::string_view target);

/// Which targets outside of LibTorch are understood: Python operators on numbers.
bool isNumberOperator(std::string_view target);

/// What to report of an op that is not known, and what to do about it.
std::string unknownOpMessage(const std::string& name);

}  // namespace retrograd
