#include "core/debug/gradient_of.h"

#include "core/debug/why.h"

namespace retrograd {
namespace {

/// The addition that completes the sum; none where nothing is added.
BoundSymbolId lastAddition(const Analysis& analysis, ValueId value) {
  const auto& ops = analysis.joint.ops;
  for (auto i = ops.size(); i-- > analysis.joint.forwardCount;)
    if (const auto& origin = analysis.document->boundSymbol(ops[i]).origin; origin.role == Role::accumulation && origin.value == value) return ops[i];
  return {};
}

/// Of a value that is used once: what the backward op that leads to it makes.
ValueId onlyGradient(const Analysis& analysis, ValueId value) {
  if (const auto gradient = whyNoGradient(analysis, value).gradient) return gradient;
  const auto& document = *analysis.document;
  ValueId found;
  for (auto op : analysis.joint.ops)
    if (const auto& origin = document.boundSymbol(op).origin; origin.role == Role::gradient && origin.value == value && !document.outputs(op).empty())
      found = document.outputs(op)[0];
  return found;
}

}  // namespace

ValueId gradientOf(const Analysis& analysis, ValueId value) {
  if (const auto last = lastAddition(analysis, value)) return analysis.document->outputs(last)[0];
  return onlyGradient(analysis, value);
}

std::vector<ValueId> gradientTermsOf(const Analysis& analysis, ValueId value) {
  if (const auto last = lastAddition(analysis, value)) {
    const auto all = analysis.document->terms(analysis.document->boundSymbol(last).origin);
    return {all.begin(), all.end()};
  }
  const auto gradient = onlyGradient(analysis, value);
  return gradient ? std::vector{gradient} : std::vector<ValueId>();
}

ValueId valueOfGradient(const Analysis& analysis, ValueId gradient) {
  const auto& document = *analysis.document;
  const auto maker = document.value(gradient).producer;
  if (!maker) return {};
  const auto& origin = document.boundSymbol(maker).origin;
  const bool isGradient = origin.role == Role::gradient || origin.role == Role::accumulation;
  return isGradient && origin.value && gradientOf(analysis, origin.value) == gradient ? origin.value : ValueId();
}

}  // namespace retrograd
