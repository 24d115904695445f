#include "core/checking/stage_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/checking/compare.h"
#include "core/checking/tolerance.h"
#include "core/pipeline/as_read.h"
#include "core/pipeline/boundary.h"
#include "core/pipeline/pipeline.h"

namespace retrograd {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double largest(const TensorData& tensor) {
  double most = 0;
  for (const double element : asDoubles(tensor))
    if (std::isfinite(element)) most = std::max(most, std::abs(element));
  return most;
}

const TensorData* find(const TensorMap& map, const std::string& name) {
  const auto it = map.find(name);
  return it == map.end() ? nullptr : &it->second;
}

/// Rows of one kind: they share a tolerance, which counts from the largest element of all.
class Rows {
 public:
  Rows(std::vector<StageCheckRow>& rows, double tolerance) : rows_(rows), first_(rows.size()), tolerance_(tolerance) {}

  void add(StageCheckRow row, const TensorData* stages, const TensorData* whole, bool mayBeZero) {
    if (!stages && !whole) return;
    if (whole) largest_ = std::max(largest_, largest(*whole));
    if (stages && whole) compare(row, *stages, *whole);
    else if (!mayBeZero || !isZero(stages ? *stages : *whole)) fail(row, stages ? "the whole model gives none" : "the stages give none");
    rows_.push_back(std::move(row));
  }

  void judge() {
    for (auto i = first_; i < rows_.size(); ++i)
      if (auto& row = rows_[i]; row.verdict == StageVerdict::close && !(row.difference <= tolerance_ * largest_)) row.verdict = StageVerdict::differs;
  }

 private:
  static void fail(StageCheckRow& row, std::string reason) {
    row.verdict = StageVerdict::differs;
    row.difference = row.relative = infinite;
    row.reason = std::move(reason);
  }

  static void compare(StageCheckRow& row, const TensorData& stages, const TensorData& whole) {
    if (identical(stages, whole)) return;
    if (stages.meta.dtype != whole.meta.dtype || stages.meta.sizes != whole.meta.sizes) return fail(row, "the stages give another shape or dtype");
    row.verdict = StageVerdict::close;
    const auto most = largest(whole);
    const auto actual = asDoubles(stages), expected = asDoubles(whole);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const bool same = actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]));
      const auto difference = same ? 0 : std::abs(actual[i] - expected[i]);
      row.difference = std::max(row.difference, std::isnan(difference) ? infinite : difference);
    }
    row.relative = row.difference == 0 ? 0 : most > 0 ? row.difference / most : infinite;
  }

  std::vector<StageCheckRow>& rows_;
  std::size_t first_;
  double tolerance_, largest_ = 0;
};

/// Gradients by the first name of a tied parameter, which both sides may have under any.
TensorMap byFirstName(const Computation& computation, const TensorMap& gradients) {
  TensorMap named;
  for (const auto& [key, tensor] : gradients) named.insert_or_assign(key.starts_with("p.") ? "p." + firstName(computation, key.substr(2)) : key, tensor);
  return named;
}

}  // namespace

StageCheck compareStages(const Analysis& whole, const RunResult& stages, const RunResult& expected) {
  StageCheck check;
  const auto tolerances = tolerancesFor(whole, std::nullopt, std::nullopt);
  check.gradientTolerance = tolerances.gradients;
  check.outputTolerance = tolerances.outputs;
  const auto& computation = whole.computation();
  using Of = StageCheckRow::Of;
  const auto ours = byFirstName(computation, stages.gradients), theirs = byFirstName(computation, expected.gradients);
  Rows gradients(check.rows, tolerances.gradients);
  std::set<std::string> done;
  for (const auto& input : computation.inputs) {
    const bool parameter = input.kind == InputKind::parameter;
    if (!parameter && input.kind != InputKind::user) continue;
    const auto name = parameter ? firstName(computation, input.target) : input.name;
    const auto key = (parameter ? "p." : "in.") + name;
    if (!done.insert(key).second) continue;
    gradients.add({parameter ? Of::parameter : Of::input, name, input.value}, find(ours, key), find(theirs, key), true);
  }
  gradients.judge();
  std::vector<ValueId> values;
  for (const auto& output : computation.outputs)
    if (output.kind == OutputKind::user || output.kind == OutputKind::loss) values.push_back(output.value);
  Rows outputs(check.rows, tolerances.outputs);
  const auto at = [](const RunResult& run, std::size_t i) { return i < run.outputs.size() && run.outputs[i] ? &*run.outputs[i] : nullptr; };
  for (std::size_t i = 0; i < std::max(stages.outputs.size(), expected.outputs.size()); ++i)
    outputs.add({Of::output, std::to_string(i), i < values.size() ? values[i] : ValueId()}, at(stages, i), at(expected, i), false);
  std::set<std::string> mutated;
  for (const auto* run : {&stages, &expected})
    for (const auto& [name, tensor] : run->mutated) mutated.insert(name);
  for (const auto& name : mutated) outputs.add({Of::mutation, name, {}}, find(stages.mutated, name), find(expected.mutated, name), false);
  outputs.judge();
  return check;
}

StageCheck checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split, const Progress& progress) {
  if (!whole->derived()) throw Error(ErrorCode::unsupportedOp, "the model's backward could not be derived, so that there is nothing to compare with");
  auto model = asRead(*whole);
  if (isUntyped(model)) completeTypes(model, *whole);
  progress.at("stages", 0);
  const auto pipeline = derivePipeline(std::move(model), whole, split, progress);
  progress.at("whole model", 0.4);
  const auto expected = runJoint(*whole);
  progress.at("stages", 0.7);
  return compareStages(*whole, runPipeline(pipeline, progress), expected);
}

}  // namespace retrograd
