#pragma once
// What shares memory while a joint is built, and whose gradient each alias carries; only the .cpp files of grad/
// include this.
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "core/base/overlap.h"
#include "core/trace/document.h"

namespace retrograd {

/// One step from a tensor to a view of it: output `output` of the joint op `view`, whose operand `base` is the tensor
/// viewed. Without an op it is plain geometry: the sizes, strides and offset of `geometry`, counted in the memory they
/// share.
struct ViewStep {
  BoundSymbolId view;
  std::int32_t output = 0;
  std::int32_t base = 0;
  MetaId geometry;
};
using ViewPath = std::vector<ViewStep>;

/// A tensor that autograd calls a base, with its differentiable views: they share memory and gradient. A tensor that
/// shares memory with a base but not its gradient (by `detach`, under `no_grad`, in a dtype without gradients) begins a
/// family of its own.
struct AliasFamily {
  ValueId current;  ///< the base as the joint has it, after all writes that the family has seen
  std::int32_t memory = -1;
  std::int32_t version = 0;  ///< of the memory, when `current` was made
  std::int32_t parent = -1;  ///< the family it was taken from; -1: it owns the memory
  ViewPath path;             ///< from the parent's base to its own
  std::int32_t input = -1;   ///< position of the computation input that the base is
  bool isInner = false;      ///< the base is inside an op's rule, where no gradient comes in: nothing of the
                             ///< computation is bound to it
  bool viewInRule =
      false;  ///< the base is a view of what its op's rule made: to autograd a view too, where the op is made of others
  std::int32_t results = 0;    ///< of an inner one: views of it that the op gives
  std::int32_t lastSeen = -1;  ///< when the last write came that autograd's version counter counted; kept in the family
                               ///< that leads those sharing the counter
  std::int32_t former =
      -1;  ///< the family of the same tensor, before it changed its sizes under `no_grad`: a leaf is one still
  bool baseReshaped =
      false;          ///< the base changed its sizes or strides under `no_grad`: it left the family, its views did not
  bool leaf = false;  ///< the base is an input that requires a gradient: PyTorch lets nothing write to it while
                      ///< gradients are recorded
};

/// Memory that several tensors may share. Each write makes a new version of it.
struct SharedMemory {
  std::int32_t version = 0;
  std::int32_t owner = 0;       ///< the family that was there first; its base holds the whole content
  std::int32_t members = 0;     ///< tensors that were found to lie in it
  BoundSymbolId lastWriter;     ///< computation op
  std::int32_t lastWrite = -1;  ///< when the last write came
  bool silent = false;          ///< an op that raises no version counter wrote to it: batch norm, to running statistics
  bool unsure = false;  ///< two results of one op lie in it, and how a gradient goes from one to the other is not known
};

/// A tensor's place: its family, and the views that lead from the family's base to it.
struct AliasPlace {
  std::int32_t family = -1;
  ViewPath path;
};

/// Aliases as tracing sees them: two values share memory if their storages say so, whatever a schema promises.
class AliasFamilies {
 public:
  explicit AliasFamilies(Document& document) : document_(document) {}

  /// The joint op `op` was emitted: notes which of its outputs lie in the memory of which operand.
  void noteOp(BoundSymbolId op);
  /// The place of a tensor that a computation value is bound to now; makes families and memories as needed.
  AliasPlace place(ValueId tensor) { return place(tensor, false); }

  AliasFamily& family(std::int32_t i) { return families_[i]; }
  const AliasFamily& family(std::int32_t i) const { return families_[i]; }
  SharedMemory& memory(std::int32_t i) { return memories_[i]; }
  const SharedMemory& memory(std::int32_t i) const { return memories_[i]; }
  SharedMemory& memoryOf(const AliasFamily& family) { return memory(family.memory); }
  const std::vector<AliasFamily>& families() const { return families_; }
  std::size_t memoryCount() const { return memories_.size(); }
  /// Whether autograd does not know that such a view shares memory (unsafe_split, _unsafe_view).
  bool isUnsafe(const ViewStep& step) const { return step.view && !document_.symbol(step.view).isView; }
  /// A write to a tensor of `family` with this geometry left `content` in its place. `seen`: autograd's version counter
  /// went on.
  void noteWrite(std::int32_t family, ValueId content, MetaId geometry, bool seen);
  /// A value that stood for a tensor in memory that was written; `geometry`: the tensor's.
  struct Stale {
    ValueId value;
    std::int32_t memory = 0;
    MetaId geometry;
  };
  /// All values of tensors, now or earlier, whose memory was written afterwards without their version counter: by
  /// tensors of which autograd does not know that they share it, or silently.
  std::vector<Stale> writtenUnseen() const;

  /// Whether the value is content that an op wrote over a whole tensor, or a view of such content.
  bool isOfContent(ValueId value) const;

  /// The family whose base this value is or was; -1: none.
  std::int32_t familyOfBase(ValueId value) const;
  /// The family's base is `root` from now on, as of the memory's present version.
  void setCurrent(std::int32_t family, ValueId root);

 private:
  /// Where a value was taken from: a view of `base`, or, without a step, `base` itself after a write in place.
  struct Source {
    ValueId base;
    bool isView = false;
    ViewStep step;
  };
  /// The tensors that share a version counter in eager PyTorch, by the family that leads them.
  std::int32_t versionGroup(std::int32_t family) const;
  /// Whether a write came after that time which the version counter of these tensors did not see, and none that it did.
  bool writtenUnseenAfter(std::int32_t time, std::int32_t group) const;
  /// Times are counted in joint ops: that of an input is 0.
  std::int32_t timeOf(ValueId value) const { return value.index < std::ssize(madeAt_) ? madeAt_[value.index] : 0; }
  std::int32_t versionGroupOf(ValueId value, std::int32_t memory) const;
  bool breaksGradient(const ViewStep& step, ValueId result) const;
  bool readsMemory(const ViewStep& step) const;
  bool sameElements(ValueId a, ValueId b) const;
  std::int32_t addFamily(AliasFamily family);
  AliasPlace place(ValueId tensor, bool isInner);
  /// Where `steps` lead out of the rule that an inner family's base is in: the op's result has the gradient, and a
  /// family of its own. Takes the steps that were gone.
  std::int32_t leaveRule(std::int32_t family, std::vector<std::pair<ViewStep, ValueId>>& steps);

  Document& document_;
  std::vector<AliasFamily> families_;
  std::vector<SharedMemory> memories_;
  std::unordered_map<std::int32_t, Source> sources_;              // by joint value
  std::unordered_map<std::int32_t, std::int32_t> familyOf_;       // by the value that is a family's current
  std::unordered_map<std::int32_t, std::int32_t> memoryOf_;       // by storage
  std::unordered_map<std::int32_t, std::int32_t> everCurrentOf_;  // by value: the family whose current it is or was
  struct Content {
    std::int32_t family;
    MetaId geometry;
    std::int32_t writtenAt;
  };
  std::unordered_map<std::int32_t, Content> contents_;  // by value
  std::vector<std::int32_t> madeAt_;  // by value; ids do not say, as an op's results keep those of the computation
  std::int32_t now_ = 0;
};

}  // namespace retrograd
