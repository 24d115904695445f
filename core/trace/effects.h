#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/trace/argument.h"
#include "core/trace/symbol.h"

namespace retrograd {

/// Positions of the arguments that this call writes, in schema order: those the schema marks "(a!)", with one table of exceptions,
/// ops whose schema does not say that running statistics are written in training (batch_norm), or says so always.
std::vector<int> writtenArguments(const Symbol& symbol, std::span<const Argument> arguments);

/// Bits of BoundSymbol::effects for a call with these arguments (schema order). Narrower than the symbol where literals tell:
/// dropout with train=False draws nothing. Whether `index.Tensor` needs data depends on its operands: see readers.
std::uint8_t effectsOf(const Symbol& symbol, std::span<const Argument> arguments);

}  // namespace retrograd
