#pragma once
#include <cstdint>
#include <optional>

#include "core/split/dataflow.h"
#include "core/trace/trace.h"

namespace retrograd {

/// Which forward ops to run again in the backward, and what that costs.
struct SavingChoice {
  OpMarks recomputeOp;          ///< for recompute()
  std::int64_t savedBytes = 0;  ///< of the storages saved, each counted once; inputs and parameters are free
  std::int64_t cost = 0;        ///< of the ops that run again, as opCost() has it; views are free
};

/// Chooses what to save for backward by bytes: a minimum cut of the forward half of the joint, between what is at hand
/// (inputs, parameters, and results of ops that are not to run twice: heavy families, draws, writes, opaque ones, those
/// that read data) and what the backward reads. A storage is cut for its bytes; views are made again from their base.
/// Of all choices that save the fewest bytes, the cheapest. `required`: ops whose results are recomputed whatever it
/// saves, by bound symbol; they must be recomputable. With a budget, the cheapest choice found that saves no more than
/// `budget` bytes: choices for growing budgets are nested, so more budget never recomputes more. They lie on the lower
/// hull of bytes against cost, refined by parts of the trace that do not depend on one another. Throws Error(badUse)
/// naming the smallest possible budget where this one is smaller.
SavingChoice chooseSaved(const Document& document, const Trace& joint, const Dataflow& dataflow,
                         const OpMarks& required, std::optional<std::int64_t> budget = {});

/// What a joint saves for backward of values that forward ops made.
struct SavedBytes {
  std::int64_t values = 0;    ///< elements times item size of each saved value
  std::int64_t storages = 0;  ///< of the distinct storages under them that belong to no input or parameter
};
SavedBytes savedBytes(const Document& document, const Trace& joint);

}  // namespace retrograd
