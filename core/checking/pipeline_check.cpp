#include "core/checking/pipeline_check.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <set>

#include "core/checking/compare.h"
#include "core/checking/reference.h"
#include "core/checking/tolerance.h"
#include "core/execution/device.h"
#include "core/pipeline/pipeline.h"

namespace retrograd {
namespace {

/// Outputs, gradients or mutations of the stages beside those of the whole model.
class Group {
 public:
  Group(std::string prefix, double tolerance) : prefix_(std::move(prefix)), tolerance_(tolerance) {}

  /// A gradient that one side leaves out has to be zero on the other.
  void add(const std::string& name, const TensorData* stages, const TensorData* whole, bool mayBeZero) {
    if (!stages && !whole) return;
    ++count_;
    if (stages && whole) {
      if (!identical(*stages, *whole)) ++differing_;
      comparison_.add(prefix_ + name, *stages, *whole);
    } else if (!mayBeZero || !isZero(stages ? *stages : *whole)) {
      comparison_.fail(prefix_ + name, stages ? "the whole model gives none" : "missing");
    }
  }

  void addAll(const TensorMap& stages, const TensorMap& whole, bool mayBeZero) {
    std::set<std::string> names;
    for (const auto& [name, tensor] : stages) names.insert(name);
    for (const auto& [name, tensor] : whole) names.insert(name);
    const auto find = [](const TensorMap& map, const std::string& name) {
      const auto it = map.find(name);
      return it == map.end() ? nullptr : &it->second;
    };
    for (const auto& name : names) add(name, find(stages, name), find(whole, name), mayBeZero);
  }

  /// Takes the verdict into the report; the worst tensor is the one that is furthest beyond its tolerance.
  void judge(CheckReport& report) const {
    if (!comparison_.failure().empty() || comparison_.error() > tolerance_) {
      report.status = CheckStatus::fail;
      if (report.reason.empty()) report.reason = comparison_.failure().empty() ? comparison_.worst() + " is beyond the tolerance" : comparison_.failure();
    }
    if (report.worst.empty() || comparison_.error() * report.tolerance > report.error * tolerance_) {
      report.error = comparison_.error();
      report.tolerance = tolerance_;
      if (comparison_.error() > 0) report.worst = comparison_.worst();
    }
  }

  std::size_t count() const { return count_; }
  std::size_t differing() const { return differing_; }

 private:
  std::string prefix_;
  double tolerance_;
  Comparison comparison_;
  std::size_t count_ = 0, differing_ = 0;
};

TensorMap byFirstName(const Computation& computation, const TensorMap& gradients) {
  TensorMap named;
  for (const auto& [key, tensor] : gradients) named.insert_or_assign(key.starts_with("p.") ? "p." + firstName(computation, key.substr(2)) : key, tensor);
  return named;
}

void compare(CheckReport& report, const Pipeline& pipeline, const CheckOptions& options, const Progress& progress) {
  const auto& whole = *pipeline.whole;
  const auto expected = runJoint(whole);
  progress.check();
  const auto actual = runPipeline(pipeline, progress);
  const auto tolerances = tolerancesFor(whole, options.tolerance, options.noise);
  Group outputs("out.", tolerances.outputs), gradients("grad.", tolerances.gradients), mutations("mut.", tolerances.outputs);
  for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
    const auto* stages = i < actual.outputs.size() && actual.outputs[i] ? &*actual.outputs[i] : nullptr;
    outputs.add(std::to_string(i), stages, expected.outputs[i] ? &*expected.outputs[i] : nullptr, false);
  }
  gradients.addAll(byFirstName(whole.computation(), actual.gradients), byFirstName(whole.computation(), expected.gradients), true);
  mutations.addAll(actual.mutated, expected.mutated, false);
  const auto differing = outputs.differing() + gradients.differing() + mutations.differing();
  const auto count = outputs.count() + gradients.count() + mutations.count();
  report.notes.push_back(differing == 0 ? fmt::format("{} tensors bit for bit those of the whole model", count)
                                        : fmt::format("{} of {} tensors bit for bit those of the whole model", count - differing, count));
  for (const auto* group : {&outputs, &gradients, &mutations}) group->judge(report);
}

}  // namespace

CheckReport checkPipeline(const std::string& path, const CutRequest& request, const CheckOptions& options, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  CheckReport report;
  report.name = path;
  std::optional<Reference> reference;
  if (!options.reference.empty()) reference = readReference(options.reference);
  const auto optionsOf = [&](const ModelFile& file) {
    auto derivation = reference ? optionsFor(*reference, file) : AnalysisOptions();
    if (options.seed) derivation.seed = *options.seed;
    if (options.gradInputs) derivation.gradInputs = options.gradInputs;
    for (const auto& [name, number] : options.numbers) derivation.numbers.insert_or_assign(name, number);
    derivation.shapes = options.shapes;
    derivation.partition = options.partition.value_or(PartitionOptions());
    derivation.rules = options.rules;
    return derivation;
  };
  AnalysisOptions reading;
  if (reference) reading.inputs = reference->inputs;
  reading.numbers = options.numbers;
  reading.shapes = options.shapes;
  reading.seed = options.seed.value_or(reference ? reference->seed.value_or(0) : 0);
  for (const auto device : request.options.devices) requireDevice(device);
  auto cut = openCut(path, request, reading, optionsOf, true, progress);
  const auto& ops = cut.whole->computation().trace.ops;
  report.ops = {ops.size(), cut.whole->joint.ops.size(), cut.whole->forward.ops.size(), cut.whole->backward.ops.size()};
  const auto stages = cut.split.stages.size();
  report.notes.push_back(fmt::format("{} stage{}", stages, stages == 1 ? "" : "s"));
  report.notes.insert(report.notes.end(), cut.notes.begin(), cut.notes.end());
  compare(report, derivePipeline(std::move(cut.model), std::move(cut.whole), std::move(cut.split), progress), options, progress);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace retrograd
