#include "core/derivation/gradient_of.h"

#include <algorithm>
#include <unordered_map>

namespace retrograd {
namespace {

/// The addition that completes the sum; none where nothing is added.
BoundSymbolId lastAddition(const Analysis& analysis, ValueId value) {
  const auto& ops = analysis.joint.ops;
  for (auto i = ops.size(); i-- > analysis.joint.forwardCount;)
    if (const auto& origin = analysis.document->boundSymbol(ops[i]).origin; origin.role == Role::accumulation && origin.value == value) return ops[i];
  return {};
}

/// A tied parameter's gradient stands under its first name.
ValueId gradientOfInput(const Analysis& analysis, ValueId value) {
  const auto& computation = analysis.computation();
  const auto& inputs = computation.trace.inputs;
  const auto gradientAt = [&](std::size_t i) {
    const auto at = analysis.joint.resultCount + i;
    return at < analysis.joint.outputs.size() ? analysis.joint.outputs[at] : ValueId();
  };
  const std::size_t own = std::find(inputs.begin(), inputs.end(), value) - inputs.begin();
  if (own == inputs.size()) return {};
  if (const auto gradient = gradientAt(own)) return gradient;
  const auto& key = computation.inputs[own].storageKey;
  for (std::size_t i = 0; i < inputs.size() && !key.empty(); ++i)
    if (computation.inputs[i].storageKey == key && gradientAt(i)) return gradientAt(i);
  return {};
}

/// Passes after the transform leave out what nobody needs.
bool isThere(const Analysis& analysis, ValueId value) {
  const auto& joint = analysis.joint;
  if (std::find(joint.inputs.begin(), joint.inputs.end(), value) != joint.inputs.end()) return true;
  return std::any_of(joint.ops.begin() + static_cast<std::ptrdiff_t>(joint.forwardCount), joint.ops.end(), [&](BoundSymbolId op) {
    const auto outputs = analysis.document->outputs(op);
    return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
  });
}

/// Where a session file of earlier days does not tell: what the backward op that leads to it makes.
ValueId lastMadeFor(const Analysis& analysis, ValueId value) {
  const auto& document = *analysis.document;
  ValueId found;
  for (auto op : analysis.joint.ops)
    if (const auto& origin = document.boundSymbol(op).origin; origin.role == Role::gradient && origin.value == value && !document.outputs(op).empty())
      found = document.outputs(op)[0];
  return found;
}

/// Of a value that no additions make the gradient of.
ValueId gradientWithoutAddition(const Analysis& analysis, ValueId value) {
  if (const auto gradient = gradientOfInput(analysis, value)) return gradient;
  if (analysis.gradients.empty()) return lastMadeFor(analysis, value);
  const auto known = analysis.gradients.find(value);
  return known != analysis.gradients.end() && isThere(analysis, known->second) ? known->second : ValueId();
}

}  // namespace

ValueId gradientOf(const Analysis& analysis, ValueId value) {
  const auto last = lastAddition(analysis, value);
  return last ? analysis.document->outputs(last)[0] : gradientWithoutAddition(analysis, value);
}

std::vector<ValueId> gradientsOfInputs(const Analysis& analysis) {
  const auto& inputs = analysis.computation().trace.inputs;
  std::unordered_map<ValueId, ValueId> sums;
  const auto& ops = analysis.joint.ops;
  for (auto i = analysis.joint.forwardCount; i < ops.size(); ++i)
    if (const auto& origin = analysis.document->boundSymbol(ops[i]).origin; origin.role == Role::accumulation && origin.value)
      sums[origin.value] = analysis.document->outputs(ops[i])[0];  // the last addition completes the sum
  std::vector<ValueId> gradients;
  for (auto input : inputs) {
    const auto sum = sums.find(input);
    gradients.push_back(sum != sums.end() ? sum->second : gradientWithoutAddition(analysis, input));
  }
  return gradients;
}

std::vector<ValueId> gradientTermsOf(const Analysis& analysis, ValueId value) {
  if (const auto last = lastAddition(analysis, value)) {
    const auto all = analysis.document->terms(analysis.document->boundSymbol(last).origin);
    return {all.begin(), all.end()};
  }
  const auto gradient = gradientOf(analysis, value);
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
