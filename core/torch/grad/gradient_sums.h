#pragma once
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/id_vector.h"
#include "core/torch/grad/joint_writer.h"
#include "core/torch/grad/rule_finder.h"

namespace retrograd {

/// The gradients of the joint's values while the backward is written: those that meet are added, the earlier one on the
/// left, and one that would lack a part is refused as a whole.
class GradientSums {
 public:
  GradientSums(Document& document, RuleFinder& rules, JointWriter& writer)
      : document_(document), rules_(rules), writer_(writer) {}

  /// The forward is complete: its values can have gradients.
  void begin() { gradients_.resize(document_.valueCount()); }
  void add(ValueId value, ValueId gradient);
  /// Has the gradients of this complex value added real part to real part. It was written through a view, and autograd
  /// then adds nothing: it replaces a part of one gradient. LibTorch's addition multiplies by a factor, which makes NaN
  /// of both parts where one of them is NaN.
  void addByParts(ValueId value) { byParts_.insert(value); }
  /// A part of the value's gradient would pass through this opaque op.
  void refuse(ValueId value, BoundSymbolId through);
  /// Names, for each addition, the terms that it sums.
  void nameTerms();
  /// Gives gradients in these sizes. Autograd gives the gradient of a leaf in the sizes that the leaf had when a
  /// recorded op first used it.
  void reshape(const std::map<ValueId, std::vector<std::int64_t>>& sizes);

  /// Values of the forward.
  IdRange<ValueId> values() const { return gradients_.ids(); }
  /// Whether a gradient came to the value, or was refused.
  bool reached(ValueId value) const {
    return gradients_.contains(value) && (gradients_[value].sum || gradients_[value].refused);
  }
  /// The sum so far; none where no gradient came.
  ValueId sum(ValueId value) const { return gradients_[value].sum; }
  /// The opaque op that refuses the gradient; none where it is not refused.
  BoundSymbolId refused(ValueId value) const { return gradients_[value].refused; }

 private:
  struct Gradient {
    ValueId sum;
    std::vector<ValueId> terms;  // all gradients summed into it, in order
    std::vector<BoundSymbolId> additions;
    BoundSymbolId refused;
  };

  /// The first result of an op, which may be an operand itself.
  ValueId emit(std::string_view symbol, const CallPattern& pattern, std::span<const ValueId> tensors,
               const Origin& origin);
  ValueId addTwo(ValueId a, ValueId b, const Origin& origin);
  ValueId addParts(ValueId a, ValueId b, const Origin& origin);

  Document& document_;
  RuleFinder& rules_;
  JointWriter& writer_;
  IdVector<ValueId, Gradient> gradients_;  // of joint values
  std::set<ValueId> byParts_;
};

}  // namespace retrograd
