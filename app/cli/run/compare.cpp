#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/terminal.h"
#include "core/derivation/precision.h"
#include "core/formats/checkpoint/checkpoint.h"
#include "core/judge/report.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/experiments/compare_passes.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/experiments/compare_weights.h"
#include "core/torch/experiments/counterpart.h"
#include "core/torch/experiments/what_if.h"
#include "core/trace/diff/diff_text.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct CompareArguments {
  std::string a, format = "text";
  Counterpart b;
  std::optional<PartitionOptions> partition;
  std::optional<double> tolerance;
  bool own = false, passes = false;
  int threads = 0;
  std::size_t rows = 20;
  InputOptions input;
};

nlohmann::ordered_json number(double x) {
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json("inf");
}

nlohmann::ordered_json number(const std::optional<double>& x) { return x ? number(*x) : nlohmann::ordered_json(); }

nlohmann::ordered_json rowJson(const Document& document, const RunDifference& row) {
  return {{"op", document.opName(row.opA)},
          {"id", row.opA.index},
          {"line", codeLine(document, row.opA)},
          {"module", document.text(document.boundSymbol(row.opA).module)},
          {"value", document.displayName(row.valueA)},
          {"relative", number(row.relative)},
          {"largest", number(row.largest)},
          {"norm_a", number(row.normA)},
          {"norm_b", number(row.normB)},
          {"note", row.note},
          {"inherited", number(row.inherited)},
          {"own", number(row.own)},
          {"budget", number(row.budget)},
          {"enlarged", number(row.enlarged)}};
}

nlohmann::ordered_json pathJson(const Document& document, const RunComparison& comparison) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const auto row : comparison.path.rows) steps.push_back(rowJson(document, comparison.rows[row]));
  return {{"to", comparison.path.end}, {"steps", std::move(steps)}};
}

/// The ends, and between them what enlarges or reduces most.
void printPath(const Document& document, const RunComparison& comparison) {
  const auto& path = comparison.path;
  if (path.rows.size() < 2) return;
  constexpr std::size_t most = 8;
  const auto weight = [&](std::size_t place) {
    if (place == 0 || place + 1 == path.rows.size()) return std::numeric_limits<double>::infinity();
    const auto enlarged = comparison.rows[path.rows[place]].enlarged.value_or(1);
    return enlarged > 0 ? std::abs(std::log(enlarged)) : 0;
  };
  std::vector<std::size_t> places(path.rows.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, std::greater(), weight);
  places.resize(std::min(places.size(), most));
  std::ranges::sort(places);
  fmt::print("path to {}, {} values:\n   {:>10} {:>10}\n", path.end, path.rows.size(), "relative", "enlarged");
  for (const auto place : places) {
    const auto& row = comparison.rows[path.rows[place]];
    const auto line = codeLine(document, row.opA);
    fmt::print("   {:>10.3g} {:>10}  #{} {}{}\n", row.relative,
               row.enlarged ? fmt::format("{:.2g}", *row.enlarged) : "", row.opA.index, document.opName(row.opA),
               line.empty() ? "" : "; " + line);
  }
}

void printRow(const Document& document, const RunDifference& row, const char* mark) {
  fmt::print("{:<2} {:>10.3g} {:>10.3g}  {:<16} #{} {}{}\n", mark, row.relative, row.largest,
             document.displayName(row.valueA), row.opA.index, document.opName(row.opA),
             row.note.empty() ? "" : "  (" + row.note + ")");
}

nlohmann::ordered_json weightsJson(const WeightComparison& weights) {
  nlohmann::ordered_json json{{"compared", weights.compared},
                              {"largest", number(weights.largest)},
                              {"differ", nlohmann::ordered_json::array()},
                              {"only_in_a", weights.onlyInA},
                              {"only_in_b", weights.onlyInB}};
  for (const auto& row : weights.differ)
    json["differ"].push_back({{"name", row.name},
                              {"module", row.module},
                              {"relative", number(row.relative)},
                              {"largest", number(row.largest)},
                              {"note", row.note}});
  return json;
}

void printOnly(const std::vector<std::string>& names, const char* where) {
  constexpr std::size_t shown = 5;
  if (names.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < shown; ++i) text += (i ? ", " : "") + names[i];
  fmt::print("{} weight{} only in the {}: {}{}\n", names.size(), names.size() == 1 ? "" : "s", where, text,
             names.size() > shown ? ", ..." : "");
}

/// Which differ, by how much, by module.
void printWeights(const WeightComparison& weights, std::size_t rows) {
  printOnly(weights.onlyInA, "first");
  printOnly(weights.onlyInB, "second");
  if (weights.differ.empty()) return fmt::print("weights: all {} are equal\n", weights.compared);
  fmt::print("weights: {} of {} differ, largest relative difference {:.3g}\n", weights.differ.size(), weights.compared,
             weights.largest);
  fmt::print("   {:>10} {:>10}  weight\n", "relative", "largest");
  const auto& differ = weights.differ;
  for (std::size_t i = 0; i < std::min(rows, differ.size()); ++i) {
    const auto& row = differ[i];
    if (i == 0 || differ[i - 1].module != row.module) {
      const auto count = std::count_if(differ.begin(), differ.end(),
                                       [&](const WeightDifference& one) { return one.module == row.module; });
      fmt::print("{:<26}{}: {}\n", "", row.module.empty() ? "the model itself" : row.module, count);
    }
    fmt::print("   {:>10.3g} {:>10.3g}    {}{}\n", row.relative, row.largest,
               row.module.empty() ? row.name : row.name.substr(row.module.size() + 1),
               row.note.empty() ? "" : "  (" + row.note + ")");
  }
  if (differ.size() > rows) fmt::print("   and {} more: --rows shows them\n", differ.size() - rows);
}

TensorMap tensorsOf(const std::string& path, const Progress& progress) {
  TensorMap tensors;
  for (const auto& tensor : readCheckpoint(path, progress).tensors) tensors.emplace(tensor.name, tensor.load());
  return tensors;
}

/// Two checkpoints without a model: their weights are all there is.
int compareCheckpoints(const CompareArguments& arguments, const Progress& progress) {
  const auto weights =
      compareWeights(tensorsOf(arguments.a, progress), tensorsOf(arguments.b.path, progress), progress);
  const auto tolerance = arguments.tolerance.value_or(0);
  const bool same = weights.largest <= tolerance && weights.onlyInA.empty() && weights.onlyInB.empty();
  if (arguments.format == "json")
    fmt::print("{}\n", dumpJson(nlohmann::ordered_json{{"a", arguments.a},
                                                       {"b", arguments.b.path},
                                                       {"tolerance", tolerance},
                                                       {"weights", weightsJson(weights)}},
                                1));
  else printWeights(weights, arguments.rows);
  return same ? allWell : checkFailed;
}

void printRows(const Document& document, const RunComparison& comparison, std::size_t most) {
  fmt::print("   {:>10} {:>10}  value\n", "relative", "largest");
  const auto first = comparison.firstDivergence.value_or(0);
  const auto begin = first > 3 ? first - 3 : 0;
  for (std::size_t i = begin; i < std::min(comparison.rows.size(), begin + most); ++i)
    printRow(document, comparison.rows[i], comparison.firstDivergence == i ? "=>" : "");
  fmt::print(
      "{} values compared, largest relative difference {:.3g}; {} op(s) only in the first, {} only in the second\n",
      comparison.rows.size(), comparison.largest, comparison.onlyInA.size(), comparison.onlyInB.size());
  if (comparison.firstDivergence)
    fmt::print("they diverge at #{} {}\n", comparison.rows[first].opA.index,
               document.opName(comparison.rows[first].opA));
}

/// Weights that one run alone has.
void tellOfMissing(const WeightComparison& weights, Report& report) {
  for (const auto* names : {&weights.onlyInA, &weights.onlyInB}) {
    if (names->empty()) continue;
    Claim claim{.by = Producer::run, .severity = Severity::note, .kind = "weights-missing"};
    claim.sentence = fmt::format("{} {} only in the {}", namesText(*names), names->size() == 1 ? "is" : "are",
                                 names == &weights.onlyInA ? "first" : "second");
    report.claims.push_back(std::move(claim));
  }
}

/// Of a job's log: which pass of a compile changed the numbers.
int runComparePasses(const CompareArguments& arguments, const Progress& progress) {
  const auto& data = arguments.input.data;
  const auto log = jobs::openJobLog(arguments.a, progress);
  const auto chain = jobPasses(log, jobs::chooseCompile(log, data.compile, data.rank), progress, true);
  const auto opened = open(arguments.a, arguments.input, progress);
  const auto comparisons = comparePasses(chain, *opened, progress);
  if (comparisons.empty()) badUse(fmt::format("compile {} has no two graphs of ops to compare", chain.compile));
  nlohmann::ordered_json json{
      {"a", arguments.a}, {"compile", chain.compile}, {"passes", nlohmann::ordered_json::array()}};
  std::vector<Verdict> verdicts;
  clearProgress();
  for (const auto& [pass, report] : comparisons) {
    const auto given = chain.passes[pass].before;
    const auto before = given ? chain.passes[*given].name : std::string("nothing");
    const auto decision = decide(report);
    verdicts.push_back(decision.verdict);
    if (arguments.format == "json") {
      json["passes"].push_back(
          {{"pass", chain.passes[pass].name}, {"before", before}, {"report", toJson(report, decision)}});
      continue;
    }
    fmt::print("{} against {}: {}\n", chain.passes[pass].name, before,
               decision.verdict == Verdict::pass ? fmt::format("nothing beyond rounding in {}", coverageText(report))
               : decision.claim                  ? "beyond rounding"
                                                 : "not possible: " + decision.reason);
    for (const auto& line : detailLines(report, true)) fmt::print("  {}\n", line.text);
  }
  if (arguments.format == "json") fmt::print("{}\n", dumpJson(json, 1));
  return worstExitCode(verdicts);
}

int runCompare(CompareArguments arguments, const Progress& progress) {
  if (arguments.passes) return runComparePasses(arguments, progress);
  if (!arguments.b.path.empty()) requireFile(arguments.b.path);
  if (isCheckpoint(arguments.a) && isCheckpoint(arguments.b.path)) return compareCheckpoints(arguments, progress);
  requireToRun(arguments.input.device);
  requireToRun(arguments.b.device);
  const auto a = open(arguments.a, arguments.input, progress);
  auto b = openCounterpart(*a, arguments.b, progress);
  if (arguments.partition && b->derived()) b = whatIf(*b, *arguments.partition, {}, progress).analysis;
  if (reportProblems(a->problems) || reportProblems(b->problems)) return badInputOrUse;
  const auto tolerance = arguments.tolerance.value_or(usualTolerance(arguments.b.precision));
  std::optional<WeightComparison> weights;  // first: what differs there explains the rest
  if (!arguments.b.path.empty() || !arguments.b.weights.empty())
    weights = compareWeights(firstOf(*a).file.weights, firstOf(*b).file.weights, progress);
  const auto comparison = compareRuns(*a, *b,
                                      {.tolerance = tolerance,
                                       .isAsked = arguments.tolerance.has_value(),
                                       .own = arguments.own,
                                       .threads = arguments.threads},
                                      progress);
  auto report = comparison.report;
  report.subject = arguments.b.path.empty() ? arguments.a : arguments.b.path;
  if (weights) tellOfMissing(*weights, report);
  const auto decision = decide(report);
  const auto& document = *a->document;
  clearProgress();
  if (arguments.format == "json") {
    nlohmann::ordered_json json{{"a", arguments.a},
                                {"b", arguments.b.path.empty() ? arguments.a : arguments.b.path},
                                {"tolerance", tolerance},
                                {"dtype_a", torchName(ownPrecision(a->file))},
                                {"dtype_b", torchName(ownPrecision(b->file))},
                                {"device_a", toString(a->device)},
                                {"device_b", toString(b->device)},
                                {"report", toJson(report, decision)},
                                {"weights", weights ? weightsJson(*weights) : nlohmann::ordered_json()},
                                {"largest", number(comparison.largest)},
                                {"first_divergence", nullptr},
                                {"path", pathJson(document, comparison)},
                                {"notes", comparison.notes},
                                {"rows", nlohmann::ordered_json::array()},
                                {"only_in_a", comparison.onlyInA.size()},
                                {"only_in_b", comparison.onlyInB.size()}};
    if (comparison.firstDivergence)
      json["first_divergence"] = rowJson(document, comparison.rows[*comparison.firstDivergence]);
    for (const auto& row : comparison.rows) json["rows"].push_back(rowJson(document, row));
    fmt::print("{}\n", dumpJson(json, 1));
  } else {
    for (const auto& line : detailLines(report)) fmt::print("{}\n", line.text);
    for (const auto& note : comparison.notes) fmt::print("note: {}\n", note);
    if (weights) printWeights(*weights, arguments.rows);
    printPath(document, comparison);
    if (!comparison.rows.empty()) printRows(document, comparison, arguments.rows);
    fmt::print("{}\n", decision.verdict == Verdict::pass ? "nothing beyond rounding"
                       : decision.claim                  ? "beyond rounding: the first fault above is to blame"
                                                         : "not possible: " + decision.reason);
  }
  return exitCode(decision.verdict);
}

Run setUpCompare(Parser parser) {
  auto arguments = std::make_shared<CompareArguments>();
  parser.add("a", arguments->a, "a model, a recording or a session; or one of two checkpoints").required();
  parser.add("b", arguments->b.path, "another one (default: the same file)");
  parser
      .add("--tolerance", arguments->tolerance,
           "relative difference at which two values diverge (default: 1e-4; 1e-2 with float16, 5e-2 with bfloat16)")
      .zeroOrMore();
  parser.flag("--own", arguments->own,
              "runs every op of the second again on the operands of the first, not only those that differ");
  parser.flag(
      "--passes", arguments->passes,
      "of a job's log: each graph of a compile against the one that its pass was given, on the job's data: which "
      "pass changed the numbers");
  addPrecisionB(parser, arguments->b.precision);
  addPartitionB(parser, arguments->partition);
  parser.add("--threads-b", arguments->threads, "threads of the second run's kernels (default: those of the first)")
      .range(1, 1024);
  addDevice(parser, arguments->b.device, "--device-b", "device of the second (default: that of the first)");
  parser.add("--seed-b", arguments->b.seed, "seed of the random ops of the second run").seed();
  parser.add("--weights-b", arguments->b.weights,
             "a checkpoint with other weights for the second run, in any form that --weights takes");
  parser.add("--rows", arguments->rows, "rows of the table around the first divergence").showDefault();
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  parser.footer(
      "Exit codes: 0 nothing beyond rounding, 1 an op, an input or a draw is to blame, the first one first, 2 not "
      "possible (docs/compare.md).");
  return [arguments](const Progress& progress) { return runCompare(*arguments, progress); };
}

const Registration registrationCompare(
    "compare", "run two models or recordings, or one in two ways, and find the op to blame: bug or rounding",
    setUpCompare);

}  // namespace
}  // namespace retrograd::cli
