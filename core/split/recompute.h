#pragma once
#include <vector>

#include "core/base/error.h"
#include "core/split/dataflow.h"
#include "core/trace/trace.h"

namespace retrograd {

/// Takes back the marks (by bound symbol) of forward ops that cannot run a second time in the backward: opaque ones;
/// those that write an input, parameter or buffer; those that make a storage which is written in place, unless all ops
/// that make it are marked; those that read what is written over later. Returns which marks it took, by bound symbol.
OpMarks restrictToRecomputable(const Document& document, const Trace& joint, const Dataflow& dataflow, OpMarks& marks);

/// The joint with marked forward ops (`recomputeOp` by index of the bound symbol) run again in the backward instead of
/// having their results saved: right before the first backward op that needs it, what it needs of them is copied, each
/// op once. Copies have Role::recompute, `recomputed`, the original's computation op as origin and its output as
/// origin.value; their values are new ones named bw_<name>, and share storage as the originals do. A draw is replayed,
/// not drawn again. Backward ops that read a recomputed value are bound again and keep all else; PassRecord::replaced
/// names them. Marks that cannot be followed are ignored, with a note in `problems` where that makes a value be saved.
/// The document grows; neither `joint` nor its bound symbols change, so that the pass can run again. Forward ops that
/// nothing reads any more stay: eliminateDeadCode() drops them. Linear in the trace's size, but for sorting what one op
/// needs.
Trace recompute(Document& document, const Trace& joint, const OpMarks& recomputeOp,
                std::vector<Problem>* problems = nullptr);

}  // namespace retrograd
