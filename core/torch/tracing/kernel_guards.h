#pragma once
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace retrograd {

/// Refuses arguments with which a kernel of LibTorch 2.15 reads or writes beyond its tensors, because it does not look
/// at their sizes or strides: batch norm with weights for another number of channels, oneDNN's LSTM with weights of
/// other shapes, the median along an expanded dimension, attention on a CPU with fewer values than keys, and its
/// backward with more. Eager PyTorch computes something from what lies there, or ends. Throws c10::Error.
void requireWhatKernelsAssume(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments);

}  // namespace retrograd
