#pragma once
#include <string_view>

namespace retrograd {

/// Python that every exported script begins with: reading and writing safetensors, copies that keep strides, replayed
/// draws.
std::string_view pythonRuntime();

/// Python that every exported script ends with: runs run() and prints and saves what came of it.
std::string_view pythonMain();

}  // namespace retrograd
