#pragma once
#include <span>

#include "core/trace/document.h"
#include "core/trace/trace.h"

namespace retrograd {

/// What a printed line leaves unsaid because it follows from the call and its operands. The printer writes only what
/// differs, the reader of printed traces (formats/text/text_trace.h) fills in the rest: both ask here.
namespace implied {

/// The operand whose storage output `output` (flat) lies in; none where it has its own. Needs the metas of both.
ValueId base(const Document& document, BoundSymbolId op, std::size_t output);

/// How many writes the storage under an output had seen: those the operands know of that lie in it, and the op's own.
std::int32_t version(const Document& document, BoundSymbolId op, std::size_t output);

/// Gradients are what backward ops make, all else are activations.
ValueKind kind(const BoundSymbol& bound);
/// Of a value that the computation is given.
ValueKind kind(InputKind input);

/// In a derived trace: it is an output of a computation op that has an operand which requires grad. The computation
/// does not say.
bool requiresGrad(const Document& document, BoundSymbolId op, std::size_t output);
/// The same for what flows in: parameters and inputs that can.
bool requiresGrad(const Document& document, const Value& input);

/// Storages of what flows in belong to others.
bool external(ValueKind kind);

/// In the computation as schema and literals say; in a derived trace a view is what shares memory, and no data decided.
std::uint8_t effects(const Document& document, BoundSymbolId op);

/// Forward ops of a derived trace run as their computation op does, backward ops without gradients; ops of a body as
/// the op around it says.
bool gradMode(const Document& document, const BoundSymbol& bound);

/// Position of origin.value among the tensor operands of the origin; -1 where it is none of them.
std::int16_t operand(const Document& document, const Origin& origin);

/// The output by which an origin names its computation op: the one meant, else the first; none where the op has no
/// output of its own.
ValueId namingOutput(const Document& document, const Origin& origin);
/// The output a gradient is for, as that name shows.
std::int16_t output(const Document& document, const Origin& origin, ValueId named);

/// Whether the schema says that this output is a tensor.
bool isTensor(const Document& document, BoundSymbolId op, std::size_t output);

/// What represents the inputs of the bodies of a higher-order op that hands its last operands to them as they are;
/// empty for other ops.
std::vector<ValueId> passedOperands(const Document& document, BoundSymbolId op);

/// A recomputed draw replays the original.
bool replays(const BoundSymbol& bound);

/// Of an accumulation of more than eight terms: the sum it adds its last term to, which says what the others are. None
/// for all else. Without it, the text of a gradient with n terms would be of n times n words.
ValueId sumBefore(const Document& document, BoundSymbolId op);

/// Node name of a computation op: that of its first output.
std::string_view nodeName(const Document& document, BoundSymbolId op);

/// The first output that exists and is not an operand returned as it is; none where there is none.
ValueId firstOutput(const Document& document, BoundSymbolId op);

}  // namespace implied

/// Roles that only the backward has; a recomputed op is a forward op that runs again.
bool isBackward(Role role);

/// Whether an op that may return its input itself (reshape, contiguous, to) did so, as the shapes and strides show.
/// True for any op that always does.
bool sharesStorage(const Symbol& symbol, const TensorMeta& from, const TensorMeta& to);

/// The operand whose storage the `returned`-th return of a call may share, by the schema's alias sets; none where it
/// has its own.
ValueId aliasedOperand(const Document& document, const Symbol& symbol, const CallPattern& pattern,
                       std::span<const ValueId> operands, std::size_t returned);

}  // namespace retrograd
