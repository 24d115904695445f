#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "app/cli/precision_option.h"
#include "app/cli/recorded.h"
#include "core/derivation/precision.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/experiments/counterpart.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct CompareArguments {
  std::string a, format = "text";
  Counterpart b;
  std::optional<double> tolerance;
  std::size_t rows = 20;
  InputOptions input;
};

nlohmann::ordered_json number(double x) {
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json("inf");
}

nlohmann::ordered_json rowJson(const Document& document, const RunDifference& row) {
  return {{"op", document.opName(row.opA)},
          {"id", row.opA.index},
          {"value", document.displayName(row.valueA)},
          {"relative", number(row.relative)},
          {"largest", number(row.largest)},
          {"norm_a", number(row.normA)},
          {"norm_b", number(row.normB)},
          {"note", row.note}};
}

void printRow(const Document& document, const RunDifference& row, const char* mark) {
  fmt::print("{:<2} {:>10.3g} {:>10.3g}  {:<16} #{} {}{}\n", mark, row.relative, row.largest,
             document.displayName(row.valueA), row.opA.index, document.opName(row.opA),
             row.note.empty() ? "" : "  (" + row.note + ")");
}

int run(CompareArguments arguments, const Progress& progress) {
  requireToRun(arguments.input.device);
  requireToRun(arguments.b.device);
  if (!arguments.b.path.empty()) requireFile(arguments.b.path);
  if (const auto choice = graphToOpen(arguments.b.path))
    arguments.b.path = choice->graph.model;  // both run on what `a` was recorded with
  const auto a = open(arguments.a, arguments.input, progress);
  const auto b = openCounterpart(*a, arguments.b, progress);
  if (reportProblems(a->problems) || reportProblems(b->problems)) return badInputOrUse;
  const auto tolerance = arguments.tolerance.value_or(usualTolerance(arguments.b.precision));
  const auto comparison = compareRuns(*a, *b, tolerance, {}, progress);
  const auto& document = *a->document;
  if (arguments.format == "json") {
    nlohmann::ordered_json json{{"a", arguments.a},
                                {"b", arguments.b.path.empty() ? arguments.a : arguments.b.path},
                                {"tolerance", tolerance},
                                {"dtype_a", torchName(ownPrecision(a->file))},
                                {"dtype_b", torchName(ownPrecision(b->file))},
                                {"device_a", toString(a->device)},
                                {"device_b", toString(b->device)},
                                {"largest", number(comparison.largest)},
                                {"first_divergence", nullptr},
                                {"notes", comparison.notes},
                                {"rows", nlohmann::ordered_json::array()},
                                {"only_in_a", comparison.onlyInA.size()},
                                {"only_in_b", comparison.onlyInB.size()}};
    if (comparison.firstDivergence)
      json["first_divergence"] = rowJson(document, comparison.rows[*comparison.firstDivergence]);
    for (const auto& row : comparison.rows) json["rows"].push_back(rowJson(document, row));
    fmt::print("{}\n", dumpJson(json, 1));
  } else {
    for (const auto& note : comparison.notes) fmt::print("note: {}\n", note);
    fmt::print("   {:>10} {:>10}  value\n", "relative", "largest");
    const auto first = comparison.firstDivergence.value_or(0);
    const auto begin = first > 3 ? first - 3 : 0;
    for (std::size_t i = begin; i < std::min(comparison.rows.size(), begin + arguments.rows); ++i)
      printRow(document, comparison.rows[i], comparison.firstDivergence == i ? "=>" : "");
    fmt::print(
        "{} values compared, largest relative difference {:.3g}; {} op(s) only in the first, {} only in the second\n",
        comparison.rows.size(), comparison.largest, comparison.onlyInA.size(), comparison.onlyInB.size());
    if (comparison.firstDivergence)
      fmt::print("they diverge at #{} {}\n", comparison.rows[first].opA.index,
                 document.opName(comparison.rows[first].opA));
  }
  return comparison.firstDivergence ? checkFailed : allWell;
}

Run setup(Parser parser) {
  auto arguments = std::make_shared<CompareArguments>();
  parser.add("a", arguments->a, "a model file or a session").required();
  parser.add("b", arguments->b.path, "another one (default: the same file)");
  parser
      .add("--tolerance", arguments->tolerance,
           "relative difference at which two values diverge (default: 1e-4; 1e-2 with float16, 5e-2 with bfloat16)")
      .zeroOrMore();
  addPrecisionB(parser, arguments->b.precision);
  addDevice(parser, arguments->b.device, "--device-b", "device of the second (default: that of the first)");
  parser.add("--seed-b", arguments->b.seed, "seed of the random ops of the second run").seed();
  parser.add("--weights-b", arguments->b.weights,
             "a checkpoint with other weights for the second run, in any form that --weights takes");
  parser.add("--rows", arguments->rows, "rows of the table around the first divergence").showDefault();
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) { return run(*arguments, progress); };
}

const Registration registration("compare",
                                "run two models, or one in two ways, and find the first op where they diverge", setup);

}  // namespace
}  // namespace retrograd::cli
