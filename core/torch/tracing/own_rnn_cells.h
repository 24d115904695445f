#pragma once
#include <string_view>

namespace retrograd {

/// While it lives and `op` is an LSTM, a GRU or a plain RNN, LibTorch takes its own cells on a GPU instead of cuDNN.
/// Before it calls cuDNN it looks whether the weights are one block of memory, by `set_` of a storage, which no trace
/// can hold; and one call for all steps would say nothing of any of them.
class OwnRnnCells {
 public:
  explicit OwnRnnCells(std::string_view op);
  ~OwnRnnCells();
  OwnRnnCells(const OwnRnnCells&) = delete;
  OwnRnnCells& operator=(const OwnRnnCells&) = delete;

 private:
  const bool cudnn_;
};

}  // namespace retrograd
