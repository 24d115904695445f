#include "core/torch/checking/every_cut.h"

#include <memory>

#include "app/cli/checks.h"
#include "app/cli/pipeline.h"
#include "app/cli/pipeline_cuts.h"
#include "core/torch/execution/threads.h"

namespace retrograd::cli {
namespace {

struct PipelineChecks : Checks {
  CutRequest request;
  bool everyCut = false;
};

/// In a suite a model that cannot be cut as asked is left out, with the reason.
CheckReport checkCase(const CutRequest& request, const SuiteCase& one) {
  try {
    return checkPipeline(one.model, request, one.options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::badUse) throw;
    CheckReport report;
    report.name = one.model;
    report.status = CheckStatus::skip;
    report.reason = error.what();
    return report;
  }
}

int checkAll(const PipelineChecks& checks, const Progress& progress) {
  auto options = checks.run;
  options.check = [&](const SuiteCase& one) { return checkCase(checks.request, one); };
  return checks.conclude(checkSuite(checks.cases(), options, [&](const CheckReport& report) { checks.print(report); }, progress));
}

int checkOne(const PipelineChecks& checks, const Progress& progress) {
  requireFile(checks.file);
  setThreads(checks.run.threads);
  if (checks.everyCut) return checks.conclude(checkEveryCut(checks.file, checks.request, checks.check, [&](const CheckReport& report) { checks.print(report); }, progress));
  const auto report = checkPipeline(checks.file, checks.request, checks.check, progress);
  checks.print(report);
  return checks.conclude({report});
}

Run setup(CLI::App& app) {
  auto checks = std::make_shared<PipelineChecks>();
  checks->addTo(app, "safetensors file with in.* and cot.*: what is run");
  addCuts(app, checks->request);
  app.add_flag("--every-cut", checks->everyCut, "cut in two before each op in turn; a cut that is refused counts as skipped")->excludes("--at")->excludes("--stages")->excludes("--suite");
  return [checks](const Progress& progress) {
    checks->requireFileOrSuite("pipeline check");
    return checks->suite.empty() ? checkOne(*checks, progress) : checkAll(*checks, progress);
  };
}

const PipelineRegistration registration("check", "compare a model's stages, run in sequence, with the model in one piece", setup);

}  // namespace
}  // namespace retrograd::cli
