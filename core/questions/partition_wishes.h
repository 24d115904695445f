#pragma once
#include <string>

#include "core/derivation/analysis.h"
#include "core/split/saved_values.h"

namespace retrograd {

/// The partition of the analysis with this saved value recomputed by the plan of whySaved(). Throws Error(badUse) where
/// it cannot be.
PartitionOptions recomputing(const Analysis& analysis, ValueId value);
/// The partition under which the results of this op are saved again: what asked for their recomputation is taken out,
/// be it the op, a module, all, the file's regions or a minimum cut.
PartitionOptions saving(const Analysis& analysis, BoundSymbolId op);

/// The ops that the wish adds to what the analysis recomputes, in each layer that is equal to theirs: the same op in
/// every member of the outermost list of modules ("h.0", "h.1", ...) that they are in.
PartitionOptions inEqualLayers(const Analysis& analysis, PartitionOptions wish);

/// The list of modules ("h") whose members save most together: the blocks that people checkpoint. Throws Error(badUse)
/// where no list has two members.
std::string listOfBlocks(const Analysis& analysis, const SavedValues& saved);
/// Each member of the list is recomputed from its input, which is kept.
PartitionOptions checkpointing(const Analysis& analysis, const std::string& list);

}  // namespace retrograd
