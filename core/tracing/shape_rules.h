#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace retrograd {

/// Shape rules for frequent ops that have no meta kernel in C++ (layer, group and batch norm, convolution, embedding, attention,
/// dropout, where, ...), so that tracing them computes nothing. `stack` holds arguments as meta tensors; on success it holds the
/// results as meta tensors. False: there is no rule, the stack is untouched. Shapes, strides and dtypes are the CPU kernels';
/// a conformance test holds each rule against the kernel.
bool applyShapeRule(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace retrograd
