#pragma once
#include <vector>

#include "core/trace/document.h"

namespace retrograd {

/// Indices of the schema arguments a call writes to: those the schema marks "(a!)", and what LibTorch writes without saying so
/// (the running statistics of batch norm in training).
std::vector<std::size_t> writtenArguments(const Symbol& symbol, const CallPattern& pattern);

/// Operands whose storage the bound symbol writes. For a higher-order op whose body writes: all its tensor operands, because a
/// body's inputs stand for them.
std::vector<ValueId> writtenOperands(const Document& document, BoundSymbolId op);

/// True where the op does more than make its outputs, so that leaving it out could be seen.
bool hasSideEffect(const Document& document, BoundSymbolId op);

}  // namespace retrograd
