#pragma once
#include <string>
#include <string_view>

#include "core/trace/symbol.h"

namespace retrograd {

/// The symbol of an op as a graph names it ("torch.ops.aten.mm.default", "_operator.add",
/// "torch.ops.higher_order.cond"): with LibTorch's schema where `lookup` gives one; not known where neither LibTorch
/// nor we have it.
Symbol resolveSymbol(std::string_view target, const SymbolLookup& lookup);

/// Which targets outside of LibTorch are understood: Python operators on numbers.
bool isNumberOperator(std::string_view target);

/// What to report of an op that is not known, and what to do about it.
std::string unknownOpMessage(const std::string& name);

}  // namespace retrograd
