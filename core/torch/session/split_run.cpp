#include "core/torch/analysis/bindings.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/analysis/results.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd {

RunResult runSplit(const Analysis& analysis) {
  const RunThreads threads(0);
  Evaluator forward(*analysis.document, analysis.request.seed);
  forward.setLeftOut(analysis.leftOut);
  const auto inputs = inputBindings(analysis);
  for (const auto& [id, value] : inputs) forward.bind(id, value);
  for (auto op : analysis.forward.ops) forward.run(op);

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
  for (auto op : analysis.backward.ops) backward.run(op);
  return {resultsOf(analysis, forward), gradientsOf(analysis, backward), mutatedOf(analysis, forward)};
}

}  // namespace retrograd
