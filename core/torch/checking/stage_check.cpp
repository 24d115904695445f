#include "core/torch/checking/stage_check.h"

#include <fmt/format.h>

#include <algorithm>
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

/// A gradient that one side leaves out has to be zero on the other.
Measure measureOf(Judge& judge, const std::string& name, const TensorData* stages, const TensorData* whole) {
  if (stages && whole) return identical(*stages, *whole) ? Measure() : judge.compare(name, *stages, *whole);
  if (isGradientName(name) && isZero(stages ? *stages : *whole)) return {};
  return Measure::failed(stages ? "the whole model gives none" : "the stages give none");
}

}  // namespace

Report compareStages(const std::shared_ptr<const Analysis>& whole, const RunResult& stages, const RunResult& expected,
                     std::optional<double> tolerance) {
  Report report{.unit = "tensor"};
  Judge judge(whole, tolerance);
  const auto& computation = whole->computation();
  const auto ours = namedResults(*whole, stages), theirs = namedResults(*whole, expected);
  std::set<std::string> done;
  const auto add = [&](const char* kind, const std::string& name, ValueId value) {
    const auto *x = findTensor(ours, name), *y = findTensor(theirs, name);
    if (!done.insert(name).second || (!x && !y)) return;
    auto claim = claimOf(Producer::stages, name, measureOf(judge, name, x, y));
    claim.kind = kind;
    claim.value = value;
    report.claims.push_back(std::move(claim));
  };
  const ParameterNames names(computation);
  for (const auto& input : computation.inputs) {
    if (input.kind == InputKind::parameter) add(parameterGradient, "grad.p." + names.first(input.target), input.value);
    if (input.kind == InputKind::user) add(inputGradient, "grad.in." + input.name, input.value);
  }
  const auto users = userOutputs(computation);
  for (std::size_t i = 0; i < users.size(); ++i)
    add(stageOutput, "out." + std::to_string(i), computation.outputs[users[i]].value);
  for (const auto* run : {&stages, &expected})
    for (const auto& [name, tensor] : run->mutated) add(stageMutation, "mut." + name, {});
  report.judged = report.due = report.claims.size();
  const auto exact = std::ranges::count_if(report.claims, [](const Claim& claim) { return claim.measure->isExact(); });
  report.notes.push_back(
      fmt::format("{} of {} tensors are bit for bit those of the whole model", exact, report.claims.size()));
  report.details["exact"] = static_cast<double>(exact);
  worstFirst(report.claims);
  return report;
}

Report checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split, const Progress& progress) {
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
