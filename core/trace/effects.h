#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/trace/document.h"

namespace retrograd {

/// Indices of the schema arguments a call writes to: those the schema marks "(a!)", and what LibTorch writes without
/// saying so (the running statistics of batch norm in training).
std::vector<std::size_t> writtenArguments(const Symbol& symbol, std::span<const Argument> arguments);

/// Bits of BoundSymbol::effects for a call with these arguments (schema order). Narrower than the symbol where literals
/// say: dropout with train=False draws nothing.
std::uint8_t effectsOf(const Symbol& symbol, std::span<const Argument> arguments);

/// The same for a call as it is in a computation: an index of integers decides no shape, a higher-order op does
/// what its bodies do.
std::uint8_t effectsInComputation(const Document& document, const Symbol& symbol, const CallPattern& pattern,
                                  std::span<const ValueId> operands);

/// Operands whose storage the bound symbol writes. For a higher-order op whose body writes: all its tensor operands,
/// because a body's inputs stand for them.
std::vector<ValueId> writtenOperands(const Document& document, BoundSymbolId op);

/// True where the op does more than make its outputs, so that leaving it out could be seen.
bool hasSideEffect(const Document& document, BoundSymbolId op);

}  // namespace retrograd
