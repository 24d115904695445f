#pragma once
#include <span>

#include "core/trace/document.h"

namespace retrograd {

/// Whether an op that may return its input itself (reshape, contiguous, to) did so, as the shapes and strides show.
/// True for any op that always does.
bool sharesStorage(const Symbol& symbol, const TensorMeta& from, const TensorMeta& to);

/// The operand whose storage the `returned`-th return of a call may share, by the schema's alias sets; none where it
/// has its own.
ValueId aliasedOperand(const Document& document, const Symbol& symbol, const CallPattern& pattern,
                       std::span<const ValueId> operands, std::size_t returned);

}  // namespace retrograd
