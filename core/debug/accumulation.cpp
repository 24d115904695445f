#include "core/debug/accumulation.h"

#include <algorithm>

#include "core/debug/why.h"

namespace retrograd {

GradientTerms gradientTerms(const Analysis& analysis, ValueId value, const RunRecord& record) {
  const auto& document = *analysis.document;
  GradientTerms result;
  result.value = value;
  std::map<std::int32_t, BoundSymbolId> makers;
  BoundSymbolId last;  // the addition that completes the sum
  for (std::size_t i = analysis.joint.forwardCount; i < analysis.joint.ops.size(); ++i) {
    const auto op = analysis.joint.ops[i];
    for (auto output : document.outputs(op))
      if (output) makers[output.index] = op;
    const auto& origin = document.boundSymbol(op).origin;
    if (origin.role == Role::accumulation && origin.value == value) last = op;
  }
  std::vector<ValueId> terms;
  if (last) {
    const auto all = document.terms(document.boundSymbol(last).origin);
    terms.assign(all.begin(), all.end());
    result.gradient = document.outputs(last)[0];
  } else {
    result.gradient = whyNoGradient(analysis, value).gradient;
    if (!result.gradient)  // a value of the forward: what leads to it says so
      for (auto op : analysis.joint.ops)
        if (const auto& origin = document.boundSymbol(op).origin; origin.role == Role::gradient && origin.value == value && !document.outputs(op).empty())
          result.gradient = document.outputs(op)[0];
    if (result.gradient) terms.push_back(result.gradient);
  }
  for (auto term : terms) {
    GradientTerm entry;
    entry.gradient = term;
    if (const auto maker = makers.find(term.index); maker != makers.end()) {
      entry.op = maker->second;
      entry.origin = document.boundSymbol(maker->second).origin.op;
    }
    entry.norm = record.of(term).statistics.norm;
    result.terms.push_back(entry);
  }
  result.norm = record.of(result.gradient).statistics.norm;
  return result;
}

}  // namespace retrograd
