#include "core/trace/trace.h"

#include <array>

namespace retrograd {

std::string_view name(TraceKind kind) {
  static constexpr std::array<std::string_view, 4> names{"computation", "joint", "forward", "backward"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace retrograd
