#include <set>

#include "core/torch/analysis/bindings.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/analysis/results.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/last_use.h"

namespace retrograd {
namespace {

/// What the trace does not return is let go after its last use.
void runAll(Evaluator& evaluator, const Trace& trace) {
  const LastUses lastUses(evaluator.document(), trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    evaluator.run(trace.ops[i]);
    evaluator.releaseOwn(lastUses.values(i));
  }
}

/// What the forward returns only for the backward, which holds it by now.
void releaseSaved(Evaluator& evaluator, const Trace& forward) {
  const std::set<ValueId> results(forward.outputs.begin(),
                                  forward.outputs.begin() + static_cast<std::ptrdiff_t>(forward.resultCount));
  for (auto i = forward.resultCount; i < forward.outputs.size(); ++i)
    if (const auto id = forward.outputs[i]; id && !results.contains(id)) evaluator.releaseOwn({&id, 1});
}

}  // namespace

RunResult runSplit(const Analysis& analysis) {
  const RunThreads threads(0);
  Evaluator forward(*analysis.document, analysis.request.seed);
  forward.setLeftOut(analysis.leftOut);
  const auto inputs = inputBindings(analysis);
  for (const auto& [id, value] : inputs) forward.bind(id, value);
  runAll(forward, analysis.forward);

  // The backward gets what its signature names and nothing else, and goes on with the forward's generator.
  Evaluator backward(*analysis.document, analysis.request.seed);
  backward.setLeftOut(analysis.leftOut);
  backward.setGenerators(forward.generators());
  backward.takeDraws(forward);
  for (auto id : analysis.backward.inputs)
    if (id && forward.has(id)) backward.bind(id, forward.value(id));
  for (auto& [id, value] : cotangentBindings(analysis)) backward.bind(id, value);
  for (const auto& [id, value] : inputs)
    if (analysis.constants.contains(id)) backward.bind(id, value);
  releaseSaved(forward, analysis.forward);
  runAll(backward, analysis.backward);
  return {resultsOf(analysis, forward), gradientsOf(analysis, backward), mutatedOf(analysis, forward)};
}

}  // namespace retrograd
