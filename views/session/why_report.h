#pragma once
#include "core/questions/why.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// What a value is that the backward makes.
struct BackwardValue {
  BoundSymbolId maker;      ///< none: the value is none of the backward's
  ValueId leadsTo;          ///< the value whose gradient it is made for
  bool isGradient = false;  ///< it is that gradient, not a step on the way to it
  BoundSymbolId operation;  ///< of the computation: it is part of the derivative of this op
  BoundSymbolId forward;    ///< where that runs: OriginLinks::forwardOf(), or the operation itself
};

/// What is known of one value: why it is saved, and how a gradient reaches it or why none does.
struct WhyValue {
  WhySaved saved;
  bool computedAgain = false;  ///< the backward computes it again
  BoundSymbolId recomputedBy;  ///< the op that does
  BackwardValue backward;
  bool asksGradient = false;  ///< a gradient could be expected: `gradient` is answered
  WhyNoGradient gradient;
  BoundSymbolId gradientOp;  ///< where it has one: the op that makes (the last part of) it
};

/// The answers about a chosen value, then about the other values of the op that the forward saves.
struct WhyReport {
  BoundSymbolId op;
  std::vector<WhyValue> values;
};

/// Pure, but walks the traces: on the worker. `value` may be invalid.
WhyReport reportWhy(const OpenDocument& document, BoundSymbolId op, ValueId value, const Progress& progress);

/// The saved value that a wish to recompute is about: the chosen one, else the first of the op that is saved; invalid
/// where there is none.
ValueId savedValueOf(const OpenDocument& document, BoundSymbolId op, ValueId value);
/// The backward op that computes the op again, or the op itself where it is one; invalid where nothing does.
BoundSymbolId recomputationOf(const Analysis& analysis, BoundSymbolId op);

}  // namespace retrograd::views
