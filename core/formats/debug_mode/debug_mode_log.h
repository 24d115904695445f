#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"

namespace retrograd {

/// A tensor that flowed into or out of a recorded call.
struct DebugModeTensor {
  std::string type;      ///< "f32[2, 3]"
  std::int64_t id = -1;  ///< equal for equal tensors, where the recording has ids
  bool hasNorm = false;
  double norm = 0;  ///< L1, in double precision; NaN and infinities as they are
};

/// An op that ran, with the norms of its tensors.
struct DebugModeCall {
  std::string op;         ///< "aten::addmm", "aten::mul.Tensor": the default overload has no name
  std::string arguments;  ///< as the recording prints them
  std::vector<DebugModeTensor> inputs, outputs;
  std::string module;  ///< that ran it: "Gpt.blocks.0.norm1"; empty: unknown
  std::string line;    ///< of the user's program: "train.py:19 in forward"; of the forward, for a backward op
  bool backward = false;
  std::int64_t position = -1;  ///< of a replayed call: among the ops of the joint trace
};

/// The ops of a run in their order, with the norms of what they took and gave.
struct DebugModeRun {
  std::string path;  ///< of the file, or of the model that was run
  std::vector<DebugModeCall> calls;
  std::map<std::string, std::size_t> others;  ///< entries that are not ops, by type: "annotate", "triton_kernel"
  bool hashes = false;  ///< the numbers are hashes (hash_tensor): equal or not, and nothing in between
};

/// Whether the bytes begin as a recording of DebugMode does.
bool looksLikeDebugMode(std::string_view bytes);

/// Reads what torch.utils._debug_mode.DebugMode.save_logs wrote: JSON, version 1. Calls that Triton kernels made count
/// as ops, by their kernel's name. Throws Error(badInput) naming the file; another version by its number, a recording
/// without numbers by what to switch on.
DebugModeRun readDebugMode(const std::string& path, const Progress& progress = {});
/// The same for bytes in memory; `name` is the run's path.
DebugModeRun readDebugMode(std::string_view bytes, const std::string& name);

}  // namespace retrograd
