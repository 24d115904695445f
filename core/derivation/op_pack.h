#pragma once
#include <functional>
#include <string>
#include <vector>

namespace retrograd {

/// Ops that a well-known Python package registers, written in C++ with what they compute and their gradients. Files may
/// name them, as they may LibTorch's own; the package itself is never loaded.
struct OpPack {
  std::string name;                   ///< "transformers", also the ops' namespace
  std::string written;                ///< what it was written after: "transformers 5.23"
  std::vector<std::string> ops;       ///< "transformers.grouped_mm_fallback.default"
  std::function<void()> registerOps;  ///< with LibTorch; called once
};

}  // namespace retrograd
