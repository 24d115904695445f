#include "core/debug/bindings.h"
#include "core/debug/joint_run.h"
#include "core/debug/results.h"

namespace retrograd {

RunResult runSplit(const Analysis& analysis) {
  Evaluator forward(*analysis.document, analysis.seed);
  for (auto& [id, value] : inputBindings(analysis)) forward.bind(id, value);
  for (auto op : analysis.forward.ops) forward.run(op);

  // The backward gets what its signature names and nothing else, and goes on with the forward's generator.
  Evaluator backward(*analysis.document, analysis.seed);
  backward.setGenerator(forward.generator());
  backward.takeDraws(forward);
  for (auto id : analysis.backward.inputs)
    if (id && forward.has(id)) backward.bind(id, forward.value(id));
  for (auto& [id, value] : cotangentBindings(analysis)) backward.bind(id, value);
  for (const auto& [id, data] : analysis.constants) backward.bind(ValueId(std::stoll(id)), borrowTensor(data));
  for (auto op : analysis.backward.ops) backward.run(op);
  return {resultsOf(analysis, forward), gradientsOf(analysis, backward), mutatedOf(analysis, forward)};
}

}  // namespace retrograd
