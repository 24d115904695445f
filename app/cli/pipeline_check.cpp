#include "core/checking/pipeline_check.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "app/cli/pipeline.h"
#include "app/cli/pipeline_cuts.h"
#include "core/checking/suite.h"
#include "core/checking/threads.h"
#include "core/trace/json.h"

namespace retrograd::cli {
namespace {

struct CheckArguments {
  std::string file, suite, format = "text";
  CutRequest request;
  CheckOptions check;
  SuiteOptions run;
};

void printLine(const CheckReport& report) {
  fmt::print("{}\n", reportLine(report));
  std::fflush(stdout);
}

int conclude(const CheckArguments& arguments, const std::vector<CheckReport>& reports) {
  auto json = nlohmann::ordered_json::array();
  bool good = true;
  for (const auto& report : reports) {
    json.push_back(toJson(report));
    good &= report.status == CheckStatus::pass || report.status == CheckStatus::skip;
  }
  if (arguments.format == "json") fmt::print("{}\n", dumpJson(json, 1));
  else fmt::print("{}\n", summary(reports));
  return good ? allWell : checkFailed;
}

/// In a suite a model that cannot be cut as asked is left out, with the reason.
CheckReport checkCase(const CheckArguments& arguments, const SuiteCase& one) {
  try {
    return checkPipeline(one.model, arguments.request, one.options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::badUse) throw;
    CheckReport report;
    report.name = one.model;
    report.status = CheckStatus::skip;
    report.reason = error.what();
    return report;
  }
}

int checkAll(const CheckArguments& arguments, const Progress& progress) {
  if (!arguments.check.reference.empty()) throw Error(ErrorCode::badUse, "--reference is for one file; a suite has its own");
  auto cases = findCases(arguments.suite);
  for (auto& one : cases) {
    one.options.tolerance = arguments.check.tolerance;
    one.options.seed = arguments.check.seed;
    one.options.gradInputs = arguments.check.gradInputs;
    one.options.partition = arguments.check.partition;
    one.options.rules = arguments.check.rules;
  }
  auto options = arguments.run;
  options.check = [&](const SuiteCase& one) { return checkCase(arguments, one); };
  const bool lines = arguments.format == "text";
  return conclude(arguments, checkSuite(cases, options, lines ? printLine : std::function<void(const CheckReport&)>(), progress));
}

int checkOne(const CheckArguments& arguments, const Progress& progress) {
  requireFile(arguments.file);
  setThreads(arguments.run.threads);
  const auto report = checkPipeline(arguments.file, arguments.request, arguments.check, progress);
  if (arguments.format == "text") printLine(report);
  return conclude(arguments, {report});
}

Run setup(CLI::App& app) {
  auto arguments = std::make_shared<CheckArguments>();
  auto* file = app.add_option("file", arguments->file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session");
  auto* suite = app.add_option("--suite", arguments->suite, "folder: every .pt2 under it is a case");
  file->excludes(suite);
  addCuts(app, arguments->request);
  app.add_option("--reference", arguments->check.reference, "safetensors file with in.* and cot.*: what is run");
  addFormat(app, arguments->format);
  app.add_option("--tolerance", arguments->check.tolerance, "relative to the largest output or gradient, in place of the ones by precision")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--grad-inputs", arguments->check.gradInputs, "user inputs to differentiate, comma separated")->delimiter(',');
  app.add_option("--seed", arguments->check.seed, "seed of what is drawn, in place of the reference's");
  addShapes(app, arguments->check.shapes, arguments->check.numbers);
  addPartition(app, arguments->check.partition);
  addLibraries(app, arguments->check.rules);
  app.add_option("--threads", arguments->run.threads, "threads of LibTorch")->check(CLI::NonNegativeNumber);
  app.add_option("--timeout", arguments->run.caseSeconds, "seconds a case of a suite may take")->check(CLI::PositiveNumber)->capture_default_str();
  return [arguments](const Progress& progress) {
    if (arguments->file.empty() && arguments->suite.empty()) throw Error(ErrorCode::badUse, "pipeline check needs a file or --suite DIR");
    return arguments->suite.empty() ? checkOne(*arguments, progress) : checkAll(*arguments, progress);
  };
}

const PipelineRegistration registration("check", "compare a model's stages, run in sequence, with the model in one piece", setup);

}  // namespace
}  // namespace retrograd::cli
