#include "core/torch/checking/pipeline_check.h"

#include <fmt/format.h>

#include <chrono>

#include "core/torch/checking/verdicts.h"
#include "core/torch/execution/device.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/judging/reference.h"
#include "core/torch/stages/pipeline.h"

namespace retrograd {
namespace {

/// The stages' results next to those of the whole model. A gradient that one side leaves out has to be zero on the
/// other.
void compare(CheckReport& report, const Pipeline& pipeline, const CheckOptions& options, const Progress& progress) {
  const auto& whole = *pipeline.whole;
  const auto expected = namedResults(whole, runJoint(whole));
  progress.check();
  const auto actual = namedResults(whole, runPipeline(pipeline, progress));
  Judge judge(pipeline.whole, options.tolerance);
  Verdicts verdicts;
  std::size_t count = 0, same = 0;
  forEachName(expected, actual, [&](const std::string& name, const TensorData* model, const TensorData* stages) {
    ++count;
    verdicts.markCompared(name);
    if (stages && model && identical(*stages, *model)) ++same;
    else if (stages && model) verdicts.add(judge.compare(name, *stages, *model));
    else if (!isGradientName(name) || !isZero(stages ? *stages : *model))
      verdicts.fail(name, stages ? "the whole model gives none" : "missing");
  });
  report.notes.push_back(same == count
                             ? fmt::format("{} tensors bit for bit those of the whole model", count)
                             : fmt::format("{} of {} tensors bit for bit those of the whole model", same, count));
  verdicts.writeTo(report, expected);
  std::set<std::string> names;
  for (const auto& [name, tensor] : expected) names.insert(name);
  report.health = healthOf(whole, expected, names, false, progress);
  if (report.health->sound() || report.status == CheckStatus::fail) return;
  report.status = CheckStatus::fail;
  report.reason = describe(*report.health);
}

}  // namespace

CutModel openForCheck(const std::string& path, const CutRequest& request, const CheckOptions& options,
                      const Progress& progress) {
  std::optional<Reference> reference;
  if (!options.reference.empty()) reference = readReference(options.reference);
  const auto requestOf = [&](const ModelFile& file) {
    auto derivation = reference ? requestFor(*reference, file) : DerivationRequest();
    options.layOver(derivation);
    return derivation;
  };
  const auto reading = reference ? options.forReading(reference->inputs, reference->seed) : options.forReading();
  for (const auto device : request.options.devices) requireDevice(device);
  return openCut(path, request, reading, requestOf, true, progress);
}

CheckReport checkPipeline(const std::string& path, const CutRequest& request, const CheckOptions& options,
                          const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  CheckReport report{.name = path};
  auto cut = openForCheck(path, request, options, progress);
  report.ops = opCounts(*cut.whole);
  const auto stages = cut.split.stages.size();
  report.notes.push_back(fmt::format("{} stage{}", stages, stages == 1 ? "" : "s"));
  report.notes.insert(report.notes.end(), cut.notes.begin(), cut.notes.end());
  compare(report, derivePipeline(std::move(cut.model), std::move(cut.whole), std::move(cut.split), progress), options,
          progress);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace retrograd
