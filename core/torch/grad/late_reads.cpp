// What the backward reads of memory that was written afterwards, as eager PyTorch does where it notices nothing of the
// write.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/torch/grad/joint_builder.h"

namespace retrograd {

/// Of the values that the derivation before found to be read late: what they are now. An input that gets its content at
/// the end of that joint's forward, and each view of it, is another value afterwards, which no op of the forward has
/// read.
void JointBuilder::noteWhatIsReadLate(std::span<const ValueId> bound) {
  if (options_.readLate.empty()) return;
  for (auto value : bound)
    if (value && options_.readLate.contains(value)) readLateAsBound_[value] = bindings_[value].value;
}

/// What the backward reads of memory that was written afterwards. Where autograd knows that tensors share it, eager
/// PyTorch refuses that ("modified by an inplace operation"), and here the value as it was is right. Views that
/// autograd does not know of (_unsafe_view, within kron and other composites, and unsafe_split) have versions of their
/// own, and batch norm raises no version of its running statistics: eager PyTorch reads what the memory holds by then,
/// and so does the backward here.
void JointBuilder::renewWhatIsReadLate() {
  for (const auto& [before, now] : options_.readLate) {
    const auto late = resolve(now).value;  // none where nothing of the joint needs it
    if (const auto bound = readLateAsBound_.find(before); late && bound != readLateAsBound_.end())
      result_.readLate[bound->second] = late;
  }
  if (!tracksAliases_) return;
  const GradModeScope dataAlone(region_, false);
  for (const auto& [value, memoryIndex, geometry] : aliases_.writtenUnseen()) {
    const auto memory = aliases_.memory(memoryIndex);
    const auto content = aliases_.family(memory.owner).current;
    const TensorMeta meta = document_.meta(geometry);
    if (value == content || result_.readLate.contains(value))
      continue;  // the derivation before knows of writes that its joint has no more
    const auto by = memory.lastWriter;
    // Real numbers may lie in what is complex memory: the same bytes in another dtype.
    const auto now = withLaziness(
        by, stridedView(by, inDType(by, flat(by, withLaziness(by, content, TensorMeta())), meta.dtype), meta), meta);
    // A value inside an op's rule is not marked as requiring a gradient, but has one when the joint is
    // differentiated again.
    const bool hasLineage = options_.createGraph && retrograd::isDifferentiable(meta.dtype);
    result_.readLate[value] = hasLineage ? joined(memory.lastWriter, now, value) : now;
  }
}

/// Replaces the locals from `begin` on that were written behind autograd's back by what their memory holds by now.
void JointBuilder::readLate(const Instance& instance, const BackwardVariant& variant, std::size_t begin,
                            std::size_t count) {
  auto& locals = writer_.locals();
  for (std::size_t i = 0; i < count; ++i) {
    const auto now = result_.readLate.find(locals[begin + i]);
    if (now == result_.readLate.end()) continue;
    const auto before = std::exchange(locals[begin + i], now->second);
    const auto isRead = [&](const RuleOp& op) {
      return std::ranges::find(op.operands, static_cast<std::int32_t>(i)) != op.operands.end();
    };
    const auto maker = document_.value(now->second).producer;
    if (!maker || std::ranges::none_of(variant.ops, isRead)) continue;
    const auto writer = document_.boundSymbol(maker).origin.op;
    if (options_.createGraph && aliases_.isOfContent(before)) refuseLateRead(instance.op, writer);
    result_.lateReads.emplace(instance.op, writer);
  }
}

/// What an op left in a tensor represents the tensor before the later write and after it: with one value for both, the
/// second derivative of what reads it late comes out wrong.
void JointBuilder::refuseLateRead(BoundSymbolId reader, BoundSymbolId writer) const {
  const auto named = [&](BoundSymbolId op) {
    return fmt::format("#{} ({})", document_.text(document_.boundSymbol(op).name), document_.opName(op));
  };
  throw Error(
      ErrorCode::unsupportedOp,
      fmt::format("its backward reads memory that {} writes to later; a second derivative of that cannot be derived",
                  named(writer)),
      named(reader));
}

}  // namespace retrograd
