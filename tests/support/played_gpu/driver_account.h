#pragma once
#include <cstddef>

namespace retrograd::test {

/// The account that the stand-in for the driver keeps (fake_driver/libcuda.cpp), as LibTorch's half writes to it.
struct DriverAccount {
  /// LibTorch waits for the GPU, in an op or by its guard: what was asked of the GPU has come to pass.
  void (*waited)(const char* who);
  /// Memory of tensors.
  void (*taken)(void* memory, std::size_t bytes);
  void (*released)(void* memory);
};

/// That of the libcuda.so.1 which the program has loaded.
const DriverAccount& driverAccount();

}  // namespace retrograd::test
