#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "core/trace/symbol.h"

namespace retrograd {

/// The arguments of a call as Python would be given them. Pointers into the pattern or the symbol's defaults; valid as
/// long as both.
struct CallArguments {
  std::vector<const Argument*> positional;
  std::vector<std::pair<std::string_view, const Argument*>> keyword;
};

/// Positional arguments in schema order and keyword-only ones. What equals the schema's default is left out where that
/// is possible (at the end of the positional ones, any keyword one); a gap before a given argument is filled with the
/// default.
CallArguments callArguments(const Symbol& symbol, const CallPattern& pattern);

}  // namespace retrograd
