#include "views/jobs/opinion_places.h"

#include <algorithm>
#include <set>

#include "core/derivation/gradient_of.h"
#include "core/trace/source.h"

namespace retrograd::views {
namespace {

/// The gradient that a claim is about; none where the model has no input of that name.
ValueId gradientIn(const Analysis& analysis, const BackwardPlace& place) {
  const auto& inputs = analysis.computation().inputs;
  const auto isIt = [&](const InputSpec& input) {
    return (!place.input.empty() && (input.target == place.input || input.name == place.input)) ||
           input.name == place.gradientOf;
  };
  const auto found = std::ranges::find_if(inputs, isIt);
  return found == inputs.end() ? ValueId() : gradientOf(analysis, found->value);
}

/// The backward's ops that `value` depends on, last first.
std::vector<BoundSymbolId> opsBehind(const Analysis& analysis, ValueId value) {
  std::set<ValueId> wanted{value};
  std::vector<BoundSymbolId> ops;
  for (auto op = analysis.backward.ops.rbegin(); op != analysis.backward.ops.rend(); ++op) {
    const auto outputs = analysis.document->outputs(*op);
    if (std::ranges::none_of(outputs, [&](ValueId output) { return wanted.contains(output); })) continue;
    ops.push_back(*op);
    for (const auto operand : analysis.document->operands(*op)) wanted.insert(operand);
  }
  return ops;
}

bool isOfLine(const Document& document, BoundSymbolId op, const BackwardPlace& place) {
  const auto* frame = shownFrame(sourceOf(document, op));
  return frame != nullptr && frame->line == place.sourceLine && frame->file == place.file;
}

}  // namespace

BoundSymbolId derivedOp(const Analysis& analysis, const BackwardPlace& place) {
  const auto gradient = gradientIn(analysis, place);
  auto ops = gradient ? opsBehind(analysis, gradient)
                      : std::vector<BoundSymbolId>(analysis.backward.ops.rbegin(), analysis.backward.ops.rend());
  const auto maker = gradient && !ops.empty() ? ops.front() : BoundSymbolId();
  std::erase_if(ops, [&](BoundSymbolId op) { return !isOfLine(*analysis.document, op, place); });
  const auto same =
      std::ranges::find_if(ops, [&](BoundSymbolId op) { return analysis.document->opName(op) == place.target; });
  if (same != ops.end()) return *same;
  return ops.empty() ? maker : ops.front();
}

}  // namespace retrograd::views
