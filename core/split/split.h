#pragma once
#include "core/trace/trace.h"

namespace retrograd {

struct SplitResult {
  Trace forward;   ///< returns the joint's results, then what is saved for backward
  Trace backward;  ///< takes what was saved, then one cotangent per result (none where it has none); returns the
                   ///< gradients
};

/// Cuts a joint trace at the border between forward and backward. Saved for backward is what the backward reads of the
/// forward and of the inputs, once each, in the order of first use. Nothing is computed again, nothing is dropped.
/// `inputCount`: how many of joint.inputs are the computation's.
SplitResult splitJoint(const Document& document, const Trace& joint, std::size_t inputCount);

}  // namespace retrograd
