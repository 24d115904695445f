#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/trace/document.h"

namespace retrograd {

/// Ops of a computation, those inside their bodies too, whose backward in PyTorch the file does not hold: those of a
/// custom autograd.Function, of which export keeps the forward only, and opaque ones. "MyGelu (model.py:12)", each
/// once. What is derived for them need not be what PyTorch runs.
std::vector<std::string> lostBackwards(const Document& document, std::span<const BoundSymbolId> ops);
/// Those of custom autograd.Functions alone.
std::vector<std::string> lostFunctions(const Document& document, std::span<const BoundSymbolId> ops);

}  // namespace retrograd
