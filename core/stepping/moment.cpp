#include "core/stepping/moment.h"

#include "core/base/enum_array.h"

namespace retrograd {

std::string_view name(StopReason reason) {
  static constexpr EnumArray<StopReason, std::string_view, 8> names{"step", "breakpoint", "bad number", "cursor",
                                                                    "end",  "start",      "cancelled",  "error"};
  return names[reason];
}

}  // namespace retrograd
