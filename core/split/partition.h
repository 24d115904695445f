#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/split/dataflow.h"
#include "core/trace/trace.h"

namespace retrograd {

/// The choice of values that are saved for backward and of those that are computed again.
struct PartitionOptions {
  enum Kind : std::uint8_t {
    defaultKind,  ///< what the formulas ask for is saved
    minCut  ///< what is fewest bytes is saved; matrix products, convolutions, attention and the like are never run
            ///< twice
  };
  Kind kind = defaultKind;
  std::optional<std::int64_t> budget;  ///< most bytes to save, storages counted once; chooses as minCut does, but
                                       ///< recomputes no more than it must
  /// What to recompute besides the file's checkpoint regions: "all", a module path with what is below it, "LIST.*"
  /// (each member of a list of modules from its input, which is kept), or "#" and a computation op's node name or id.
  std::vector<std::string> recompute;
  bool regions = true;  ///< false: the file's own checkpoint regions are not recomputed

  bool operator==(const PartitionOptions&) const = default;
};

struct PartitionResult {
  Trace joint;
  std::vector<Problem> problems;  ///< marked ops whose results are saved all the same, and why
};

/// The forward ops of the joint that options.recompute and, unless `regions` is false, the file's checkpoint regions
/// (tag_activation_checkpoint) mark, by bound symbol. Throws Error(badUse) for a module or op that is not there, naming
/// near ones.
OpMarks markedForRecomputation(const Document& document, const Trace& joint, const std::vector<std::string>& recompute,
                               bool regions = true);

/// The joint with recomputation in its backward half as the options ask, and without dead code; itself where there is
/// nothing to do. With minCut never more bytes than without. Expects a joint without dead code. Throws Error(badUse) as
/// markedForRecomputation(), and for a budget that is too small.
PartitionResult partition(Document& document, const Trace& joint, const PartitionOptions& options);

struct SplitResult {
  Trace forward;   ///< returns the joint's results, then what is saved for backward
  Trace backward;  ///< takes what was saved, then one cotangent per result (none where it has none); returns the
                   ///< gradients
};

/// Cuts a joint trace at the border between forward and backward. Saved for backward is what the backward reads of the
/// forward and of the inputs, once each, in the order of first use. Nothing is computed again, nothing is dropped.
/// `inputCount`: how many of joint.inputs are the computation's.
SplitResult splitJoint(const Document& document, const Trace& joint, std::size_t inputCount);

}  // namespace retrograd
