#include "core/torch/checking/every_cut.h"

#include <fmt/format.h>

#include <chrono>

#include "core/cut/as_read.h"
#include "core/torch/checking/stage_check.h"
#include "core/torch/stages/boundary.h"

namespace retrograd {
namespace {

void check(CheckReport& report, const CutModel& cut, const ModelFile& model, std::size_t position,
           const PipelineOptions& options, const Progress& progress) {
  PipelineSplit split;
  try {
    split = splitPipeline(*model.document, model.computation, {position}, options);
  } catch (const Error& error) {
    report.status = CheckStatus::skip;
    report.reason = error.what();
    return;
  }
  const auto result = checkStages(cut.whole, split, progress);
  const auto equal = result.count(StageVerdict::equal), count = result.rows.size();
  report.notes.push_back(fmt::format("{} stages", split.stages.size()));
  report.notes.push_back(equal == count
                             ? fmt::format("{} tensors bit for bit those of the whole model", count)
                             : fmt::format("{} of {} tensors bit for bit those of the whole model", equal, count));
  for (const auto& row : result.rows) {
    report.error = std::max(report.error, row.relative);
    if (row.verdict != StageVerdict::differs) continue;
    report.status = CheckStatus::fail;
    report.reason = fmt::format("{} is off{}{}", row.name, row.reason.empty() ? "" : ": ", row.reason);
  }
}

}  // namespace

std::vector<CheckReport> checkEveryCut(const std::string& path, CutRequest request, const CheckOptions& options,
                                       const std::function<void(const CheckReport&)>& tell, const Progress& progress) {
  request.useMarkers = false;
  const auto cut = openForCheck(path, request, options, progress);
  auto model = asRead(*cut.whole);
  if (isUntyped(model)) completeTypes(model, *cut.whole);
  const auto& ops = model.computation.trace.ops;
  std::vector<CheckReport> reports;
  for (std::size_t position = 1; position < ops.size(); ++position) {
    progress.at("cuts", static_cast<double>(position) / static_cast<double>(ops.size()));
    const auto start = std::chrono::steady_clock::now();
    CheckReport report;
    report.name = fmt::format("{} at #{}", path, model.document->text(model.document->boundSymbol(ops[position]).name));
    try {
      check(report, cut, model, position, request.options, progress);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      report.status = error.code() == ErrorCode::badUse ? CheckStatus::skip : CheckStatus::error;
      report.reason = error.what();
    }
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    tell(report);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace retrograd
