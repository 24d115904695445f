#include "core/torch/checking/every_cut.h"

#include <fmt/format.h>

#include <chrono>

#include "core/cut/as_read.h"
#include "core/torch/checking/stage_check.h"
#include "core/torch/stages/boundary.h"

namespace retrograd {
namespace {

Report check(const std::string& subject, const CutModel& cut, const ModelFile& model, std::size_t position,
             const PipelineOptions& options, const Progress& progress) {
  PipelineSplit split;
  try {
    split = splitPipeline(*model.document, model.computation, {position}, options);
  } catch (const Error& error) {
    return reportOfRefusal(subject, error.what());
  }
  try {
    auto report = checkStages(cut.whole, split, progress);
    report.subject = subject;
    return report;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    return error.code() == ErrorCode::badUse ? reportOfRefusal(subject, error.what())
                                             : reportOfError(subject, error.what());
  }
}

}  // namespace

std::vector<Report> checkEveryCut(const std::string& path, CutRequest request, const CheckOptions& options,
                                  const std::function<void(const Report&)>& tell, const Progress& progress) {
  request.useMarkers = false;
  const auto cut = openForCheck(path, request, options, progress);
  auto model = asRead(*cut.whole);
  if (isUntyped(model)) completeTypes(model, *cut.whole);
  const auto& ops = model.computation.trace.ops;
  std::vector<Report> reports;
  for (std::size_t position = 1; position < ops.size(); ++position) {
    progress.at("cuts", static_cast<double>(position) / static_cast<double>(ops.size()));
    const auto start = std::chrono::steady_clock::now();
    const auto subject =
        fmt::format("{} at #{}", path, model.document->text(model.document->boundSymbol(ops[position]).name));
    auto report = check(subject, cut, model, position, request.options, progress);
    report.details["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    tell(report);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace retrograd
