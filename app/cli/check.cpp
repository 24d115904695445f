#include "core/checking/check.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "core/checking/suite.h"
#include "core/checking/threads.h"
#include "core/execution/device.h"
#include "core/trace/json.h"

namespace retrograd::cli {
namespace {

struct CheckArguments {
  std::string file, suite, format = "text", report;
  CheckOptions check;
  SuiteOptions run;
};

void printLine(const CheckReport& report) {
  fmt::print("{}\n", reportLine(report));
  std::fflush(stdout);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text << '\n';
  if (!stream.flush()) throw Error(ErrorCode::io, "could not be written", path);
}

/// Prints and writes what was found; the exit code that follows from it.
int conclude(const CheckArguments& arguments, const std::vector<CheckReport>& reports) {
  auto json = nlohmann::ordered_json::array();
  bool good = true, unknownOps = false;
  for (const auto& report : reports) {
    json.push_back(toJson(report));
    good &= report.status == CheckStatus::pass || report.status == CheckStatus::skip;
    unknownOps |= report.unknownOps;
  }
  if (!arguments.report.empty()) write(arguments.report, dumpJson(json, 1));
  if (arguments.format == "json")
    fmt::print("{}\n", dumpJson(json, 1));
  else
    fmt::print("{}\n", summary(reports));
  if (!good) return checkFailed;
  return unknownOps ? badInputOrUse : allWell;
}

int checkOne(const CheckArguments& arguments, const Progress& progress) {
  setThreads(arguments.run.threads);
  requireFile(arguments.file);
  std::vector<CheckReport> reports;
  try {
    reports.push_back(checkModel(arguments.file, arguments.check, progress));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::badInput || error.code() == ErrorCode::badUse || error.code() == ErrorCode::cancelled) throw;
    CheckReport report;
    report.name = arguments.file;
    report.status = CheckStatus::error;
    report.reason = error.what();
    reports.push_back(std::move(report));
  }
  if (arguments.format == "text") printLine(reports.front());
  return conclude(arguments, reports);
}

int checkAll(const CheckArguments& arguments, const Progress& progress) {
  if (arguments.check.device) requireDriver(*arguments.check.device);  // the cases run in a process that is still to be forked
  if (!arguments.check.reference.empty()) throw Error(ErrorCode::badUse, "--reference is for one file; a suite has its own");
  auto cases = findCases(arguments.suite);
  for (auto& one : cases) {
    one.options.tolerance = arguments.check.tolerance;
    one.options.seed = arguments.check.seed;
    one.options.gradInputs = arguments.check.gradInputs;
    one.options.partition = arguments.check.partition;
    one.options.rules = arguments.check.rules;
    one.options.order = arguments.check.order;
    one.options.again = arguments.check.again;
    one.options.device = arguments.check.device;
  }
  const bool lines = arguments.format == "text";
  return conclude(arguments, checkSuite(cases, arguments.run, lines ? printLine : std::function<void(const CheckReport&)>(), progress));
}

Run setup(CLI::App& app) {
  auto arguments = std::make_shared<CheckArguments>();
  auto* file = app.add_option("file", arguments->file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session");
  auto* suite = app.add_option("--suite", arguments->suite, "folder: every .pt2 under it is a case");
  file->excludes(suite);
  app.add_option("--reference", arguments->check.reference, "safetensors file with in.*, cot.*, out.*, grad.in.*, grad.p.*, mut.*");
  addFormat(app, arguments->format);
  app.add_option("--report", arguments->report, "write the JSON report to this file");
  app.add_option("--tolerance", arguments->check.tolerance, "relative to the largest output or gradient, in place of the ones by precision")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--grad-inputs", arguments->check.gradInputs, "user inputs to differentiate, comma separated")->delimiter(',');
  app.add_option("--seed", arguments->check.seed, "seed of what is drawn, in place of the reference's");
  addShapes(app, arguments->check.shapes, arguments->check.numbers);
  addPartition(app, arguments->check.partition);
  addLibraries(app, arguments->check.rules);
  addOrder(app, arguments->check.order, arguments->check.again);
  addDevice(app, arguments->check.device);
  app.add_option("--threads", arguments->run.threads, "threads of LibTorch")->check(CLI::NonNegativeNumber);
  app.add_option("--timeout", arguments->run.caseSeconds, "seconds a case of a suite may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  return [arguments](const Progress& progress) {
    if (arguments->file.empty() && arguments->suite.empty()) throw Error(ErrorCode::badUse, "check needs a file or --suite DIR");
    return arguments->suite.empty() ? checkOne(*arguments, progress) : checkAll(*arguments, progress);
  };
}

const Registration registration("check", "compare forward and backward with a reference and with LibTorch's own autograd", setup);

}  // namespace
}  // namespace retrograd::cli
