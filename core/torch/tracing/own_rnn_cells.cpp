#include "core/torch/tracing/own_rnn_cells.h"

#include <ATen/Context.h>

#include <algorithm>
#include <array>

namespace retrograd {
namespace {

bool isRecurrent(std::string_view op) {
  static constexpr std::array<std::string_view, 4> names{"aten.lstm.", "aten.gru.", "aten.rnn_tanh.", "aten.rnn_relu."};
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return op.starts_with(name); });
}

}  // namespace

OwnRnnCells::OwnRnnCells(std::string_view op) : cudnn_(at::globalContext().userEnabledCuDNN()) {
  if (isRecurrent(op)) at::globalContext().setUserEnabledCuDNN(false);
}

OwnRnnCells::~OwnRnnCells() { at::globalContext().setUserEnabledCuDNN(cudnn_); }

}  // namespace retrograd
