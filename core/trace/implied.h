#pragma once
#include "core/trace/document.h"

namespace retrograd {

/// What a printed line leaves unsaid because it follows from the call and its operands. The printer writes only what differs, the reader of
/// printed traces (formats/text_trace.h) fills in the rest: both ask here.
namespace implied {

/// The operand whose storage output `output` (flat) lies in; none where it has its own. Needs the metas of both.
ValueId base(const Document& document, BoundSymbolId op, std::size_t output);

/// How many writes the storage under an output had seen: in the computation those through the operand it shares it with, in a derived trace
/// none.
std::int32_t version(const Document& document, BoundSymbolId op, std::size_t output);

/// Gradients are what backward ops make, all else are activations.
ValueKind kind(const BoundSymbol& bound);

/// In the computation as schema and literals say; in a derived trace a view is what shares memory, and no data decided.
std::uint8_t effects(const Document& document, BoundSymbolId op);

/// Forward ops of a derived trace run as their computation op does, backward ops without gradients; ops of a body as the op around it says.
bool gradMode(const Document& document, const BoundSymbol& bound);

/// Position of origin.value among the tensor operands of the origin; -1 where it is none of them.
std::int16_t operand(const Document& document, const Origin& origin);

/// The output whose cotangent a backward op reads: the only one there is.
std::int16_t output(const Document& document, const Origin& origin);

/// Node name of a computation op: that of its first output.
std::string_view nodeName(const Document& document, BoundSymbolId op);

/// The first output that exists and is no operand returned as it is; none where there is none.
ValueId firstOutput(const Document& document, BoundSymbolId op);

}  // namespace implied

/// Roles that only the backward has; a recomputed op is a forward op that runs again.
bool isBackward(Role role);

}  // namespace retrograd
