#pragma once
#include "core/trace/symbol.h"

namespace c10 {
class OperatorHandle;
}

namespace retrograd {

/// Looks an op up in LibTorch's dispatcher: name, schema, defaults, aliasing, tags.
/// Only namespaces of the allow list are found, and of those no op that touches files, processes or the network:
/// nothing in an opened file is executed as code.
std::optional<Symbol> lookupSymbol(std::string_view name);

/// Puts an op of a library that the user loaded on the allow list: "myops.swish.default".
void allowLibraryOp(const std::string& name);

/// Describes an op that is in hand, allow-listed or not: LibTorch's own formulas dispatch ops that no file may name.
Symbol describeOperator(const c10::OperatorHandle& op);

}  // namespace retrograd
