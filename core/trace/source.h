#pragma once
#include "core/trace/document.h"

namespace retrograd {

/// The frame to show for a stack: the innermost that is not PyTorch's own code, so that a linear layer leads to the
/// model's line and not into torch/nn; the innermost where all are. nullptr for an empty stack.
const SourceFrame* shownFrame(const SourceStack& stack);

}  // namespace retrograd
