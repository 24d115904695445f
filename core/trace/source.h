#pragma once
#include <string>

#include "core/trace/document.h"

namespace retrograd {

/// The stack of the op, or of the computation op that it comes from; empty where there is none. Innermost frame last.
const SourceStack& sourceOf(const Document& document, BoundSymbolId op);

/// The frame to show for a stack: the innermost that is not PyTorch's own code, so that a linear layer leads to the
/// model's line and not into torch/nn; the innermost where all are. nullptr for an empty stack.
const SourceFrame* shownFrame(const SourceStack& stack);

/// Whether a custom torch.autograd.Function seems to be called in this line: `NAME.apply(...)`, or one line of its own,
/// `def forward(ctx, ...)`. A graph that was exported holds the ops of its forward and not its backward.
bool callsCustomFunction(const SourceFrame& frame);

/// The innermost frame of an op's stack in which a custom Function that it belongs to is called; nullptr where there is
/// none. A layer that is called in the same line does not belong to it.
const SourceFrame* customFunctionFrame(const SourceStack& stack);
/// The name of that Function, as `NAME.apply(...)` says it; empty where no frame does.
std::string customFunctionName(const SourceStack& stack);

/// The line of Python that an op comes from, over its computation op where it has none: "model.py:31  y = x.log()".
/// Empty where none is known.
std::string pythonLine(const Document& document, BoundSymbolId op);

/// An op with its place, for messages: "#7 torch.ops.aten.log.default (t5), module layers.0". What is not known is left
/// out, `value` where it is none.
std::string placeOfOp(const Document& document, BoundSymbolId op, ValueId value = {});

}  // namespace retrograd
