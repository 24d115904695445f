#pragma once
// libretrograd_nccl.so: what of c10d's NCCL backend needs the headers of CUDA and NCCL to compile. A library of its
// own, loaded where a GPU is used, so that the program links nothing of NVIDIA's. Its unresolved symbols are those of
// LibTorch's CUDA half, which has to be loaded before it.
#include <cstdint>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace retrograd::nccl {

inline constexpr int interfaceVersion = 1;

extern "C" {

/// interfaceVersion of the library.
int retrogradNcclInterface();
/// NCCL_VERSION_CODE of the headers that it was compiled with. LibTorch's classes have members of NCCL's types, so it
/// has to be the version that LibTorch loads.
int retrogradNcclHeaders();
/// What a GPU alone is called, as 32 hexadecimal digits and a 0 in `text`, which has room for 33. Throws c10::Error.
void retrogradNcclUnit(int device, char* text);
/// A new ProcessGroupNCCL, whose one reference is the caller's. Connects to nobody yet. Throws c10::Error.
c10d::Backend* retrogradNcclGroup(c10d::Store* store, int rank, int size, std::int64_t timeoutInMilliseconds);

}  // extern "C"
}  // namespace retrograd::nccl
