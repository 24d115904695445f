#pragma once
#include <ATen/core/ivalue.h>

#include <optional>
#include <string_view>

namespace retrograd {

/// Results on meta tensors of ops that only a GPU has kernels for and that have no meta kernel in C++: the fused cells of LSTM and GRU and
/// memory-efficient attention with their backward, and the question whether cuDNN computes a CTC loss. `name` as LibTorch prints it ("aten::_thnn_fused_lstm_cell"),
/// `arguments` the call's, on meta tensors. nullopt for any other op.
std::optional<torch::jit::Stack> resultsByRule(std::string_view name, const torch::jit::Stack& arguments);

}  // namespace retrograd
