#pragma once
// Literal arguments of ops that the transform itself calls; only the .cpp files of grad/ include this.
#include <vector>

#include "core/trace/argument.h"

namespace retrograd {

inline Argument integers(const std::vector<std::int64_t>& values) {
  Argument list = Argument::ofList({});
  for (auto value : values) list.items.push_back(Argument::ofInt(value));
  return list;
}

/// Sizes, strides and offset, as as_strided takes them.
inline std::vector<Argument> stridedArguments(const TensorMeta& meta) {
  return {integers(meta.sizes), integers(meta.strides), Argument::ofInt(meta.offset)};
}

}  // namespace retrograd
