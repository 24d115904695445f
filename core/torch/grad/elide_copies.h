#pragma once
#include "core/trace/trace.h"

namespace retrograd {

/// Takes back copies that in-place ops were given where nobody could notice: the value copied is not read afterwards,
/// shares memory with no value that is, and is neither input, parameter nor result. The op then writes in place as the
/// file says. Expects a joint without dead code. The document's storages change with it: the written value lies where
/// the copied one lay. Linear in the trace's size; the pass is recorded in the history.
Trace elideCopies(Document& document, const Trace& joint);

}  // namespace retrograd
