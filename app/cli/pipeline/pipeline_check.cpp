#include "core/torch/checking/every_cut.h"

#include <memory>

#include "app/cli/check/checks.h"
#include "app/cli/parsing/command.h"
#include "app/cli/parsing/input.h"
#include "app/cli/pipeline/pipeline_cuts.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd::cli {
namespace {

struct PipelineChecks : Checks {
  CutRequest request;
  bool everyCut = false;
};

/// In a suite a model that cannot be cut as asked is left out, with the reason.
Report checkCase(const CutRequest& request, const SuiteCase& one) {
  try {
    return checkPipeline(one.model, request, one.options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::badUse) throw;
    return reportOfRefusal(one.model, error.what());
  }
}

int checkAll(const PipelineChecks& checks, const Progress& progress) {
  auto options = checks.run;
  options.check = [&](const SuiteCase& one) { return checkCase(checks.request, one); };
  return checks.conclude(
      checkSuite(checks.cases(), options, [&](const Report& report) { checks.print(report); }, progress));
}

int checkEach(const PipelineChecks& checks, const Progress& progress) {
  for (const auto& file : checks.files) requireFile(inputFile(file));
  setThreads(checks.run.threads);
  std::vector<Report> reports;
  for (const auto& name : checks.files) {
    const auto file = inputFile(name);
    if (checks.everyCut) {
      auto cuts = checkEveryCut(
          file, checks.request, checks.check, [&](const Report& report) { checks.print(report); }, progress);
      reports.insert(reports.end(), std::make_move_iterator(cuts.begin()), std::make_move_iterator(cuts.end()));
    } else {
      reports.push_back(checkPipeline(file, checks.request, checks.check, progress));
      checks.print(reports.back());
    }
  }
  return checks.conclude(reports);
}

Run setUpPipelineCheck(Parser parser) {
  auto checks = std::make_shared<PipelineChecks>();
  checks->addTo(parser, "safetensors file with in.* and cot.*: what is run");
  addCuts(parser, checks->request);
  parser
      .flag("--every-cut", checks->everyCut, "cut in two before each op in turn; a cut that is refused was not judged")
      .excludes("--at")
      .excludes("--stages")
      .excludes("--suite");
  return [checks](const Progress& progress) {
    checks->requireFileOrSuite("pipeline check");
    return checks->suite.empty() ? checkEach(*checks, progress) : checkAll(*checks, progress);
  };
}

const Registration registrationPipelineCheck("check",
                                             "compare a model's stages, run in sequence, with the model in one piece",
                                             setUpPipelineCheck, "pipeline");

}  // namespace
}  // namespace retrograd::cli
