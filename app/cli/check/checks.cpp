#include "app/cli/check/checks.h"

#include <fmt/format.h>

#include "app/cli/parsing/output.h"
#include "app/cli/parsing/report.h"
#include "app/cli/parsing/terminal.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {

void Checks::addTo(Parser parser, const std::string& referenceHelp) {
  const auto one =
      parser.add("file", files,
                 "models (.pt2, TorchScript, printed traces), .retrograd sessions, a recorded step, or a job's log");
  one.excludes(parser.add("--suite", suite, "a folder: check every .pt2 file below it"));
  parser.add("--reference", check.reference, referenceHelp);
  addFormat(parser, format);
  addOutput(parser, "--report", report, "write the JSON report to this file (-: standard output)");
  parser
      .add("--tolerance", check.tolerance,
           "tolerance of each tensor relative to its largest element, instead of one from rounding")
      .zeroOrMore();
  parser.add("--grad-inputs", check.gradInputs, "user inputs to differentiate, comma separated").commaSeparated();
  parser.add("--seed", check.seed, "seed of what is drawn, instead of the reference's").seed();
  addShapes(parser, check.shapes, check.numbers);
  addGivenData(parser, check.data);
  addPartition(parser, check.partition);
  addLibraries(parser, check.rules);
  addFill(parser, fill);
  addOpeningMemory(parser);
  parser.add("--threads", run.threads, "the most threads an op takes; small ops take one (default, and 0: all cores)")
      .zeroOrMore();
  parser.flag("--allow-skips", allowSkips, "exit with 0 even if files could not be checked");
  parser.add("--timeout", run.caseSeconds, "seconds that one file of a suite may take").aboveZero().showDefault();
}

void Checks::requireFileOrSuite(const std::string& command) const {
  if (files.empty() && suite.empty()) badUse(command + " needs a file or --suite FOLDER");
  if (files.size() > 1 && !check.reference.empty())
    badUse(
        "--reference belongs to one file; check the files one by one, or put each in a folder with its "
        "ref.safetensors and use --suite",
        "check");
}

std::vector<SuiteCase> Checks::cases() const {
  if (!fill.empty()) badUse("--fill is for one file");
  if (!check.reference.empty()) badUse("--reference is for one file; a suite has its own");
  auto found = findCases(suite);
  for (auto& one : found) {
    auto options = check;
    options.reference = one.options.reference;
    options.deterministic = one.options.deterministic;
    options.customBackward = one.options.customBackward;
    options.warnings = one.options.warnings;
    one.options = std::move(options);
  }
  return found;
}

void Checks::print(const Report& report) const {
  if (format == "text") printReport(report, decide(report), !suite.empty());
}

int Checks::conclude(const std::vector<Report>& reports) const {
  auto json = nlohmann::ordered_json::array();
  std::vector<Verdict> verdicts;
  for (const auto& one : reports) {
    const auto decision = decide(one);
    verdicts.push_back(decision.verdict);
    json.push_back(toJson(one, decision));
  }
  if (!report.empty()) writeText(report, dumpJson(json, 1) + "\n");
  if (format == "json") fmt::print("{}\n", dumpJson(json, 1));
  else if (!terminal().quiet) fmt::print("{}\n", summary(verdicts));
  if (allowSkips) std::erase(verdicts, Verdict::notPossible);
  return worstExitCode(verdicts);
}

}  // namespace retrograd::cli
