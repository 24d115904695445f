#pragma once
#include <set>
#include <string>

namespace retrograd {

/// LibTorch gives the backward ops of some fused kernels no derivative: attention, embedding bags, hardsigmoid, margin
/// losses, segment_reduce. Where one of these is to be differentiated itself, it is computed by its formula in other
/// ops, which LibTorch differentiates as often as one likes; elsewhere it runs as it is. On a GPU the CPU's own fused
/// attention is computed by its formula, too, so that a file exported on a CPU runs there. Registered once; calling it
/// again does nothing.
void registerMathematicalForms();

/// What is said of an op that was computed so.
inline constexpr const char* mathematicalFormNote =
    "LibTorch has no derivative of this op: where it is differentiated, its formula in other ops is used instead";

/// Which ops the calling thread has computed by their formulas since the last call
/// ("aten._scaled_dot_product_flash_attention_for_cpu_backward").
std::set<std::string> takeMathematicalForms();

}  // namespace retrograd
