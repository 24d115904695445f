#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace retrograd {

/// A backward pass over LibTorch's grad Nodes on the calling thread, in order of sequence number, latest first.
/// LibTorch's own engine runs the same nodes, but on threads that no interception sees. The graph stays usable.
/// roots[i] receives cotangents[i]; the result holds one gradient per leaf edge, undefined where none arrives.
std::vector<at::Tensor> walkBackward(const std::vector<torch::autograd::Edge>& roots,
                                     const std::vector<at::Tensor>& cotangents,
                                     const std::vector<torch::autograd::Edge>& leaves, bool createGraph = false);

}  // namespace retrograd
