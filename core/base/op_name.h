#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/base/number_text.h"

namespace retrograd {

/// "aten.addmm" of "torch.ops.aten.addmm.default" or "aten.addmm.default": an op as people read it, without the prefix
/// that all have and the overload that is the usual one.
inline std::string shortOpName(std::string_view op) {
  constexpr std::string_view prefix = "torch.ops.", usual = ".default";
  if (op.starts_with(prefix)) op.remove_prefix(prefix.size());
  if (op.ends_with(usual)) op.remove_suffix(usual.size());
  return std::string(op);
}

/// "mm" of "aten.mm.out": where there is room for one word, also without the namespace of LibTorch's own ops and
/// without an overload.
inline std::string bareOpName(std::string_view op) {
  if (op.starts_with("aten.")) op.remove_prefix(5);
  return std::string(op.substr(0, op.rfind('.')));
}

/// The number of "#12", which is how an op is written everywhere: in listings, the debugger's commands, breakpoints,
/// cuts and messages. It is the document's id (BoundSymbolId) and the same in computation, joint, forward and backward.
/// nullopt for any other text; whether there is such an op is for the caller to say.
inline std::optional<std::int32_t> opNumber(std::string_view text) {
  return text.starts_with('#') ? numberIn<std::int32_t>(text.substr(1)) : std::nullopt;
}

}  // namespace retrograd
