#include "app/cli/checks.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "core/trace/json.h"

namespace retrograd::cli {
namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text << '\n';
  if (!stream.flush()) throw Error(ErrorCode::io, "could not be written", path);
}

}  // namespace

void Checks::addTo(CLI::App& app, const std::string& referenceHelp) {
  auto* one = app.add_option("file", file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session");
  one->excludes(app.add_option("--suite", suite, "folder: every .pt2 under it is a case"));
  app.add_option("--reference", check.reference, referenceHelp);
  addFormat(app, format);
  app.add_option("--report", report, "write the JSON report to this file");
  app.add_option("--tolerance", check.tolerance, "relative to the largest output or gradient, in place of the ones by precision")->check(CLI::NonNegativeNumber);
  app.add_option("--grad-inputs", check.gradInputs, "user inputs to differentiate, comma separated")->delimiter(',');
  app.add_option("--seed", check.seed, "seed of what is drawn, in place of the reference's");
  addShapes(app, check.shapes, check.numbers);
  addPartition(app, check.partition);
  addLibraries(app, check.rules);
  app.add_option("--threads", run.threads, "threads of LibTorch")->check(CLI::NonNegativeNumber);
  app.add_option("--timeout", run.caseSeconds, "seconds a case of a suite may take")->check(CLI::PositiveNumber)->capture_default_str();
}

void Checks::requireFileOrSuite(const std::string& command) const {
  if (file.empty() && suite.empty()) throw Error(ErrorCode::badUse, command + " needs a file or --suite DIR");
}

std::vector<SuiteCase> Checks::cases() const {
  if (!check.reference.empty()) throw Error(ErrorCode::badUse, "--reference is for one file; a suite has its own");
  auto found = findCases(suite);
  for (auto& one : found) {
    auto options = check;
    options.reference = one.options.reference;
    options.noise = one.options.noise;
    options.deterministic = one.options.deterministic;
    one.options = std::move(options);
  }
  return found;
}

void Checks::print(const CheckReport& report) const {
  if (format != "text") return;
  fmt::print("{}\n", reportLine(report));
  std::fflush(stdout);
}

int Checks::conclude(const std::vector<CheckReport>& reports) const {
  auto json = nlohmann::ordered_json::array();
  bool good = true, unknownOps = false;
  for (const auto& one : reports) {
    json.push_back(toJson(one));
    good &= one.status == CheckStatus::pass || one.status == CheckStatus::skip;
    unknownOps |= one.unknownOps;
  }
  if (!report.empty()) write(report, dumpJson(json, 1));
  if (format == "json")
    fmt::print("{}\n", dumpJson(json, 1));
  else
    fmt::print("{}\n", summary(reports));
  if (!good) return checkFailed;
  return unknownOps ? badInputOrUse : allWell;
}

}  // namespace retrograd::cli
