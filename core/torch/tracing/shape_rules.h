#pragma once
#include <ATen/core/ivalue.h>

#include <optional>
#include <string_view>

namespace retrograd {

/// Results on meta tensors of ops that have no meta kernel in C++, most of them with kernels for a GPU alone: the fused
/// cells of LSTM and GRU and memory-efficient attention with their backward, the question whether cuDNN computes a CTC
/// loss, and floor_divide. `name` as LibTorch prints it
/// ("aten::_thnn_fused_lstm_cell"), `arguments` the call's, on meta tensors. nullopt for any other op.
std::optional<torch::jit::Stack> resultsByRule(std::string_view name, const torch::jit::Stack& arguments);

}  // namespace retrograd
