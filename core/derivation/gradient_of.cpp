#include "core/derivation/gradient_of.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace retrograd {
namespace {

/// The addition that completes the sum; none where nothing is added.
BoundSymbolId lastAddition(const Analysis& analysis, ValueId value) {
  const auto& ops = analysis.joint.ops;
  for (auto i = ops.size(); i-- > analysis.joint.forwardCount;)
    if (const auto& origin = analysis.document->boundSymbol(ops[i]).origin;
        origin.role == Role::accumulation && origin.value == value)
      return ops[i];
  return {};
}

/// What the joint gives as the gradient of this input; none where it has none, or another name of the parameter has it.
ValueId gradientAt(const Analysis& analysis, std::size_t input) {
  const auto at = analysis.joint.resultCount + input;
  return at < analysis.joint.outputs.size() ? analysis.joint.outputs[at] : ValueId();
}

/// A tied parameter's gradient is under its first name.
ValueId gradientOfInput(const Analysis& analysis, ValueId value) {
  const auto& computation = analysis.computation();
  const auto& inputs = computation.trace.inputs;
  const std::size_t own = std::find(inputs.begin(), inputs.end(), value) - inputs.begin();
  if (own == inputs.size()) return {};
  if (const auto gradient = gradientAt(analysis, own)) return gradient;
  const auto& key = computation.inputs[own].storageKey;
  for (std::size_t i = 0; i < inputs.size() && !key.empty(); ++i)
    if (computation.inputs[i].storageKey == key && gradientAt(analysis, i)) return gradientAt(analysis, i);
  return {};
}

/// Passes after the transform leave out what nobody needs.
bool isThere(const Analysis& analysis, ValueId value) {
  const auto& joint = analysis.joint;
  if (std::find(joint.inputs.begin(), joint.inputs.end(), value) != joint.inputs.end()) return true;
  return std::ranges::any_of(joint.ops, [&](BoundSymbolId op) {
    const auto outputs = analysis.document->outputs(op);
    return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
  });
}

/// Where a session file of earlier days does not say: what the backward op that leads to it makes.
ValueId lastMadeFor(const Analysis& analysis, ValueId value) {
  const auto& document = *analysis.document;
  ValueId found;
  for (auto op : analysis.joint.ops)
    if (const auto& origin = document.boundSymbol(op).origin;
        origin.role == Role::gradient && origin.value == value && !document.outputs(op).empty())
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

// As gradientOf() has them, from what gives way to what wins: what the backward says, gradients of inputs, sums.
IdVector<ValueId, ValueId> gradientsOfValues(const Analysis& analysis) {
  const auto& document = *analysis.document;
  const auto& joint = analysis.joint;
  IdVector<ValueId, ValueId> gradients(document.valueCount());
  IdVector<ValueId, std::uint8_t> isMade(
      document.valueCount());  // passes after the transform leave out what nobody needs
  for (auto input : joint.inputs)
    if (input) isMade[input] = true;
  for (std::size_t i = 0; i < joint.ops.size(); ++i) {
    const auto outputs = document.outputs(joint.ops[i]);
    const auto& origin = document.boundSymbol(joint.ops[i]).origin;
    for (auto output : outputs)
      if (output) isMade[output] = true;
    if (analysis.gradients.empty() && origin.role == Role::gradient && origin.value && !outputs.empty())
      gradients[origin.value] = outputs[0];
  }
  for (const auto& [value, gradient] : analysis.gradients)
    if (gradient && isMade[gradient]) gradients[value] = gradient;
  const auto& computation = analysis.computation();
  std::unordered_map<std::string_view, ValueId> tied;  // the gradient that is under a parameter's first name
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    if (const auto gradient = gradientAt(analysis, i)) tied.try_emplace(computation.inputs[i].storageKey, gradient);
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto& input = computation.inputs[i];
    const auto own = gradientAt(analysis, i);
    if (own) gradients[input.value] = own;
    else if (const auto first = tied.find(input.storageKey); first != tied.end() && !input.storageKey.empty())
      gradients[input.value] = first->second;
  }
  for (auto i = joint.forwardCount; i < joint.ops.size(); ++i)
    if (const auto& origin = document.boundSymbol(joint.ops[i]).origin;
        origin.role == Role::accumulation && origin.value)
      gradients[origin.value] = document.outputs(joint.ops[i])[0];  // the last addition completes the sum
  return gradients;
}

std::vector<ValueId> gradientsOfInputs(const Analysis& analysis) {
  const auto all = gradientsOfValues(analysis);
  std::vector<ValueId> gradients;
  for (auto input : analysis.computation().trace.inputs) gradients.push_back(all[input]);
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
  if (analysis.file.recording) {
    const auto found = std::ranges::find(analysis.gradients, gradient, &std::pair<const ValueId, ValueId>::second);
    return found == analysis.gradients.end() ? ValueId() : found->first;
  }
  const auto& origin = document.boundSymbol(maker).origin;
  const bool isGradient = origin.role == Role::gradient || origin.role == Role::accumulation;
  return isGradient && origin.value && gradientOf(analysis, origin.value) == gradient ? origin.value : ValueId();
}

}  // namespace retrograd
