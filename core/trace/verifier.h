#pragma once
#include <vector>

#include "core/base/error.h"
#include "core/trace/trace.h"

namespace retrograd {

/// Checks what every trace must hold; run after each pass in tests. Each violation is a Problem of severity error with
/// the op: ids in range; operands defined before use, values defined once (an op may return an operand itself); as many
/// holes as operands; outputs as the call's returns group them; tensors with meta and storage; results defined; and
/// outside of the computation an origin with a role and a computation op or a value for every op.
std::vector<Problem> verify(const Document& document, const Trace& trace);

}  // namespace retrograd
