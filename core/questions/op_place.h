#pragma once
#include <string>

#include "core/trace/document.h"

namespace retrograd {

/// An op with its place, for messages: "torch.ops.aten.log.default (t5), module layers.0, model.py:31: y = x.log()".
/// What is not known is left out, `value` where it is none.
std::string placeOfOp(const Document& document, BoundSymbolId op, ValueId value = {});

}  // namespace retrograd
