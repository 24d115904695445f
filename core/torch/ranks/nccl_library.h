#pragma once
#include <string>

#include "core/torch/ranks/nccl/interface.h"

namespace retrograd {

/// The functions of libretrograd_nccl.so (torch/ranks/nccl/interface.h says what they do).
struct NcclLibrary {
  decltype(&nccl::retrogradNcclInterface) interface = nullptr;
  decltype(&nccl::retrogradNcclHeaders) headers = nullptr;
  decltype(&nccl::retrogradNcclUnit) unit = nullptr;
  decltype(&nccl::retrogradNcclGroup) group = nullptr;

  /// Why it cannot be used and what to do about it; empty where it can, and then all functions are there.
  std::string trouble;
};

/// The library, loaded on first use from next to the program or from ../lib of there. LibTorch's CUDA half has to be
/// loaded (requireDevice).
const NcclLibrary& ncclLibrary();

/// Why headers of one version do not go with a library of another, both as NCCL_VERSION_CODE; empty where they do.
std::string ncclMismatch(int headers, int library);

}  // namespace retrograd
