#include "core/torch/checking/stage_check.h"

#include <limits>
#include <set>

#include "core/cut/as_read.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/judge.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/judging/reference.h"
#include "core/torch/stages/boundary.h"
#include "core/torch/stages/pipeline.h"

namespace retrograd {
namespace {

/// The row with its verdict. A gradient that one side leaves out has to be zero on the other.
void compare(StageCheckRow& row, Judge& judge, const std::string& name, const TensorData* stages,
             const TensorData* whole) {
  if (stages && whole && identical(*stages, *whole)) return;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (!stages || !whole) {
    if (isGradientName(name) && isZero(stages ? *stages : *whole)) return;
    row.verdict = StageVerdict::differs;
    row.difference = row.relative = infinite;
    row.reason = stages ? "the whole model gives none" : "the stages give none";
    return;
  }
  auto verdict = judge.compare(name, *stages, *whole);
  row.verdict = verdict.good() ? StageVerdict::close : StageVerdict::differs;
  row.difference = verdict.deviation;
  row.relative = verdict.deviation == 0 ? 0 : verdict.scale > 0 ? verdict.deviation / verdict.scale : infinite;
  row.tolerance = verdict.tolerance;
  row.reason = std::move(verdict.failure);
}

}  // namespace

StageCheck compareStages(const std::shared_ptr<const Analysis>& whole, const RunResult& stages,
                         const RunResult& expected) {
  StageCheck check;
  Judge judge(whole);
  const auto& computation = whole->computation();
  using Of = StageCheckRow::Of;
  const auto ours = namedResults(*whole, stages), theirs = namedResults(*whole, expected);
  std::set<std::string> done;
  const auto add = [&](StageCheckRow row, const std::string& name) {
    const auto *x = findTensor(ours, name), *y = findTensor(theirs, name);
    if (!done.insert(name).second || (!x && !y)) return;
    compare(row, judge, name, x, y);
    check.rows.push_back(std::move(row));
  };
  const ParameterNames names(computation);
  for (const auto& input : computation.inputs) {
    if (input.kind == InputKind::parameter)
      add({Of::parameter, names.first(input.target), input.value}, "grad.p." + names.first(input.target));
    if (input.kind == InputKind::user) add({Of::input, input.name, input.value}, "grad.in." + input.name);
  }
  const auto users = userOutputs(computation);
  for (std::size_t i = 0; i < users.size(); ++i)
    add({Of::output, std::to_string(i), computation.outputs[users[i]].value}, "out." + std::to_string(i));
  for (const auto* run : {&stages, &expected})
    for (const auto& [name, tensor] : run->mutated) add({Of::mutation, name, {}}, "mut." + name);
  return check;
}

StageCheck checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                       const Progress& progress) {
  if (!whole->derived())
    throw Error(ErrorCode::unsupportedOp,
                "the model's backward could not be derived, so that there is nothing to compare with");
  auto model = asRead(*whole);
  if (isUntyped(model)) completeTypes(model, *whole);
  progress.at("stages", 0);
  const auto pipeline = derivePipeline(std::move(model), whole, split, progress);
  progress.at("whole model", 0.4);
  const auto expected = runJoint(*whole);
  progress.at("stages", 0.7);
  return compareStages(whole, runPipeline(pipeline, progress), expected);
}

}  // namespace retrograd
