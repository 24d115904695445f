#include "views/session/why_report.h"

#include <algorithm>

#include "core/derivation/gradient_of.h"
#include "views/session/selection.h"

namespace retrograd::views {
namespace {

/// The number of the op's operand `hole` among its tensors, as Origin::operand counts.
int tensorNumber(const Document& document, BoundSymbolId op, std::size_t hole) {
  const auto operands = document.operands(op);
  return static_cast<int>(
      std::count_if(operands.begin(), operands.begin() + hole, [&](ValueId v) { return v && document.isTensor(v); }));
}

/// An op that brings a gradient to the value from one of its readers in the computation; the last that runs.
BoundSymbolId gradientFromReaders(const Analysis& analysis, ValueId value) {
  const auto& document = *analysis.document;
  BoundSymbolId last;
  for (auto reader : analysis.computation().trace.ops) {
    const auto operands = document.operands(reader);
    for (std::size_t hole = 0; hole < operands.size(); ++hole) {
      if (operands[hole] != value) continue;
      for (auto derived : analysis.links.derived(reader)) {
        const auto& origin = document.boundSymbol(derived).origin;
        if (origin.role == Role::gradient && origin.operand == tensorNumber(document, reader, hole)) last = derived;
      }
    }
  }
  return last;
}

/// The computation's value that a value of the traces represents; itself for an input; invalid for what lies inside an
/// operation.
ValueId computationValue(const Analysis& analysis, ValueId value) {
  const auto& document = *analysis.document;
  const auto& trace = analysis.computation().trace;
  if (std::ranges::find(trace.inputs, value) != trace.inputs.end()) return value;
  const auto maker = document.value(value).producer;
  if (!maker) return {};
  // An operation's results are the same values in computation and forward; what it makes on the way to them is the
  // forward's own.
  const auto operation = OriginLinks::origin(document, maker);
  const auto results = operation ? document.outputs(operation) : document.outputs(maker);
  return std::ranges::find(results, value) != results.end() ? value : ValueId();
}

void answerGradient(const Analysis& analysis, ValueId value, WhyValue& answer) {
  const auto asked = computationValue(analysis, value);
  if (!asked) return;
  answer.asksGradient = true;
  const bool isInput = !analysis.document->value(asked).producer;
  auto gradient = isInput ? ValueId() : gradientOf(analysis, asked);  // the sum, where several came together
  if (!gradient) {
    answer.gradientOp = gradientFromReaders(analysis, asked);
    if (!isInput && answer.gradientOp) return;
    answer.gradient = whyNoGradient(analysis, asked);
    gradient = answer.gradient.gradient;
  }
  answer.gradient.gradient = gradient;
  if (!gradient) return;
  for (auto op : analysis.backward.ops) {
    const auto outputs = analysis.document->outputs(op);
    if (std::ranges::find(outputs, gradient) != outputs.end()) answer.gradientOp = op;
  }
}

BackwardValue backwardValue(const Analysis& analysis, ValueId value) {
  const auto& document = *analysis.document;
  const auto maker = document.value(value).producer;
  if (!maker || !isBackwardRole(document.boundSymbol(maker).origin.role)) return {};
  BackwardValue answer;
  answer.maker = maker;
  const auto& origin = document.boundSymbol(maker).origin;
  answer.operation = OriginLinks::origin(document, maker);
  answer.forward = analysis.links.forwardOf(document, maker);
  if (!answer.forward) answer.forward = answer.operation;
  answer.isGradient = valueOfGradient(analysis, value).valid();
  answer.leadsTo = origin.value;
  if (!answer.forward && answer.leadsTo) answer.forward = document.value(answer.leadsTo).producer;  // of a sum
  return answer;
}

WhyValue answerFor(const OpenDocument& document, ValueId value) {
  const auto& analysis = *document.analysis;
  WhyValue answer;
  answer.saved = whySaved(analysis, value);
  if (!answer.saved.saved && answer.saved.maker) answer.recomputedBy = recomputationOf(analysis, answer.saved.maker);
  answer.computedAgain = answer.recomputedBy.valid();
  answer.backward = backwardValue(analysis, value);
  answerGradient(analysis, value, answer);
  return answer;
}

std::vector<ValueId> savedValues(const OpenDocument& document, BoundSymbolId op) {
  const auto& tables = *document.analysis->document;
  const bool backward = isBackwardRole(tables.boundSymbol(op).origin.role);
  std::vector<ValueId> found;
  for (auto value : backward ? tables.operands(op) : tables.outputs(op))
    if (document.saved.contains(value) && std::ranges::find(found, value) == found.end()) found.push_back(value);
  return found;
}

}  // namespace

WhyReport reportWhy(const OpenDocument& document, BoundSymbolId op, ValueId value, const Progress& progress) {
  WhyReport report;
  report.op = op;
  std::vector<ValueId> values;
  if (value) values.push_back(value);
  for (auto other : savedValues(document, op))
    if (other != value) values.push_back(other);
  const auto& tables = *document.analysis->document;
  if (values.empty())
    for (auto output : tables.outputs(op))
      if (output) values.push_back(output);
  for (auto asked : values) {
    progress.check();
    report.values.push_back(answerFor(document, asked));
  }
  return report;
}

ValueId savedValueOf(const OpenDocument& document, BoundSymbolId op, ValueId value) {
  if (document.saved.contains(value)) return value;
  if (!op) return {};
  // Memory that is kept through a view is saved under the view's name.
  if (const auto storage = value ? document.analysis->document->value(value).storage : StorageId())
    for (auto other : std::span(document.analysis->backward.inputs).first(document.analysis->backward.savedCount))
      if (document.analysis->document->value(other).storage == storage) return other;
  const auto values = savedValues(document, op);
  return values.empty() ? ValueId() : values.front();
}

BoundSymbolId recomputationOf(const Analysis& analysis, BoundSymbolId op) {
  const auto& document = *analysis.document;
  if (!op) return {};
  if (document.boundSymbol(op).recomputed) return op;
  const auto operation = OriginLinks::origin(document, op);
  if (!operation) return {};
  for (auto derived : analysis.links.derived(operation)) {
    const auto& other = document.boundSymbol(derived);
    if (other.recomputed && (op == operation || other.symbol == document.boundSymbol(op).symbol)) return derived;
  }
  return {};
}

}  // namespace retrograd::views
