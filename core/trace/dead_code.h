#pragma once
#include "core/trace/trace.h"

namespace retrograd {

/// The trace without ops whose absence nobody can notice. It keeps ops that make a needed value, ops that write a
/// storage that a kept op reads later or that outlives the trace (external storages, results), opaque ones, and ops
/// that draw from the generator, because later draws depend on them. Linear in the trace's size; the pass is recorded
/// in the history. (Thunder's rule, with effects as data instead of a "do not drop" tag.)
Trace eliminateDeadCode(const Document& document, const Trace& trace);

}  // namespace retrograd
