#pragma once
#include <optional>
#include <string_view>

#include "core/base/number_text.h"

namespace retrograd {

/// The number of "#12", which is how an op is written everywhere: in listings, the debugger's commands, breakpoints,
/// cuts and messages. It is the document's id (BoundSymbolId) and the same in computation, joint, forward and backward.
/// nullopt for any other text; whether there is such an op is for the caller to say.
inline std::optional<std::int32_t> opNumber(std::string_view text) {
  return text.starts_with('#') ? numberIn<std::int32_t>(text.substr(1)) : std::nullopt;
}

}  // namespace retrograd
