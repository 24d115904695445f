#include "core/torch/checking/pipeline_check.h"

#include <fmt/format.h>

#include <chrono>
#include <set>

#include "core/torch/checking/stage_check.h"
#include "core/torch/execution/device.h"
#include "core/torch/judging/health.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/judging/reference.h"
#include "core/torch/stages/pipeline.h"

namespace retrograd {
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

Report checkPipeline(const std::string& path, const CutRequest& request, const CheckOptions& options,
                     const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  auto cut = openForCheck(path, request, options, progress);
  const auto whole = cut.whole;
  const auto stages = cut.split.stages.size();
  auto notes = std::move(cut.notes);
  const auto pipeline = derivePipeline(std::move(cut.model), std::move(cut.whole), std::move(cut.split), progress);
  const auto expected = runJoint(*whole);
  progress.check();
  auto report = compareStages(whole, runPipeline(pipeline, progress), expected, options.tolerance);
  report.subject = path;
  report.notes.push_back(fmt::format("{} stage{}", stages, stages == 1 ? "" : "s"));
  report.notes.insert(report.notes.end(), notes.begin(), notes.end());
  const auto named = namedResults(*whole, expected);
  std::set<std::string> names;
  for (const auto& [name, tensor] : named) names.insert(name);
  for (auto& claim : healthOf(*whole, named, names, false, progress)) report.claims.push_back(std::move(claim));
  addDetails(report, opCounts(*whole));
  report.details["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace retrograd
