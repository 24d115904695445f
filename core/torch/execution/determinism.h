#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/trace/document.h"

namespace retrograd {

/// What LibTorch's deterministic mode makes of an op on a GPU.
enum class GpuKernel : std::uint8_t {
  eager,          ///< the mode does not choose another kernel, and eager's adds in a fixed order
  deterministic,  ///< the mode chooses a kernel that adds in a fixed order, and that kernel is right
  strict,         ///< the same, but only where the mode does not merely warn
  ofDimensions,   ///< the mode's kernel is right, but refuses a tensor without dimensions, as which eager's runs
  wrong,          ///< the mode's kernel gives wrong numbers
  none,           ///< there is no kernel that adds in a fixed order
};

/// How an op runs on a GPU.
struct KernelChoice {
  GpuKernel kernel = GpuKernel::eager;
  /// Why it may give another last bit when it runs again; empty where it does not.
  std::string_view lastBit;

  /// Whether it runs in LibTorch's deterministic mode.
  bool usesMode() const { return kernel == GpuKernel::deterministic || kernel == GpuKernel::strict; }
};

/// The kernel of an op of a document on a GPU: the deterministic one where it is right, else the one that eager
/// PyTorch takes.
KernelChoice gpuKernelOf(const Document& document, BoundSymbolId op);

/// A row of the table behind gpuKernelOf(): ops that are not in it run as in eager PyTorch.
struct KernelRule {
  std::string_view op;  ///< "aten.scatter_add"; its overloads and its in-place form are meant, too
  GpuKernel kernel;
  std::string_view reason;
};
std::span<const KernelRule> gpuKernelRules();

/// "stepping back over these ops may change the last bit of their results: aten.put (it adds by atomics)"; empty where
/// no op of the trace is such a one.
std::string lastBitNote(const Document& document, std::span<const BoundSymbolId> ops);

}  // namespace retrograd
