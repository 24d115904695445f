#pragma once
#include <cstdint>

#include "core/base/enum_array.h"

namespace retrograd {

/// What can be opened, told apart by what is in it, never by its name (torch/reading/formats.h has the table).
enum class Format : std::uint8_t {
  model,      ///< an exported program (.pt2), TorchScript or printed traces; what is none of them is refused by name
  captured,   ///< a folder with retrograd.json: graphs with what they ran on
  recording,  ///< a step that retrograd.record wrote
  ranks,      ///< a folder with a recording of each rank
  job,        ///< logs of torch.compile
  repro,      ///< a script of torch.compile that calls one graph, or a folder with one
  session,    ///< what was derived, saved
  pickle,     ///< a memory snapshot, as it is or compressed
};

inline const char* name(Format format) {
  static constexpr EnumArray<Format, const char*, 8> names{
      "model", "captured step", "recorded step", "recorded ranks", "job", "repro script", "session", "memory snapshot"};
  return names[format];
}

}  // namespace retrograd
