#pragma once
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/formats/recording/recording.h"
#include "core/trace/document.h"

namespace retrograd {

/// How the forward of a recording and its backwards hang together, as the recorder linked them: which op is a way of
/// the forward, which ops of a backward are its derivative, and which gradient belongs to which value.
class RecordedLinks {
 public:
  RecordedLinks(const Document& document, const StepRecording& recording);

  /// Whether an op is one of the forward: none of a backward, of clipping or of an optimizer, and no repetition.
  bool isForward(BoundSymbolId op) const;
  /// Whether autograd would have seen the op: it ran in grad mode, or a backward ran it again so, or it is within a
  /// custom Function, whose node stands for it.
  bool isSeen(BoundSymbolId op) const;
  /// A detach of autograd's own, which keeps a result: the same value to whoever reads it.
  bool isAlias(BoundSymbolId op) const;
  /// The op that begins the call of a custom Function which this one is within; the op itself elsewhere.
  BoundSymbolId callOf(BoundSymbolId op) const;
  /// Ops of backwards that are the derivative of the op, or of the call of the Function that it is within.
  std::span<const BoundSymbolId> backward(BoundSymbolId op) const;
  /// Whether numbers of the value go on to a loss, or to an op that a gradient came to, whether or not autograd saw it.
  bool leadsToLoss(ValueId value) const { return value && leads_[value]; }
  /// The gradient of each value of the forward that a backward made one of, as its ops read or made it; values whose
  /// gradient cannot be told from others are left out.
  const std::map<ValueId, ValueId>& gradients() const { return gradients_; }

 private:
  void link();
  void findLeading();
  bool hasSizes(ValueId value, ValueId gradient) const;
  bool isOfBackward(ValueId value) const;
  ValueId ownOf(ValueId value) const;
  ValueId readFor(BoundSymbolId op, ValueId output) const;
  ValueId madeFor(BoundSymbolId op, ValueId operand) const;
  void findGradients();

  const Document& document_;
  const StepRecording& recording_;
  std::unordered_map<std::int32_t, std::vector<BoundSymbolId>> linked_;   ///< by forward op, those of its last backward
  std::unordered_map<std::int32_t, BoundSymbolId> repeated_;              ///< by forward op: the op that repeats it
  std::unordered_map<std::int32_t, std::vector<BoundSymbolId>> readers_;  ///< by value: forward ops with nodes
  IdVector<ValueId, char> leads_;
  std::map<ValueId, ValueId> gradients_;
};

/// Whether the detach `op` is one by which autograd keeps the result of the op before it.
bool isAliasOfAutograd(const Document& document, const StepRecording& recording, BoundSymbolId op);

}  // namespace retrograd
