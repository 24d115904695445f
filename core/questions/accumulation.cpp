#include "core/questions/accumulation.h"

#include "core/derivation/gradient_of.h"

namespace retrograd {

GradientTerms gradientTerms(const Analysis& analysis, ValueId value, const RunRecord& record) {
  const auto& document = *analysis.document;
  std::map<ValueId, BoundSymbolId> makers;
  for (std::size_t i = analysis.joint.forwardCount; i < analysis.joint.ops.size(); ++i)
    for (auto output : document.outputs(analysis.joint.ops[i]))
      if (output) makers[output] = analysis.joint.ops[i];
  GradientTerms result;
  result.value = value;
  result.gradient = gradientOf(analysis, value);
  result.norm = record.of(result.gradient).statistics.norm;
  for (auto gradient : gradientTermsOf(analysis, value)) {
    GradientTerm term;
    term.gradient = gradient;
    if (const auto maker = makers.find(gradient); maker != makers.end()) {
      term.op = maker->second;
      term.origin = document.boundSymbol(maker->second).origin.op;
    }
    term.norm = record.of(gradient).statistics.norm;
    result.terms.push_back(term);
  }
  return result;
}

}  // namespace retrograd
