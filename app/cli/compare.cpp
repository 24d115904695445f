#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "core/debug/compare_runs.h"
#include "core/debug/counterpart.h"
#include "core/debug/read_model.h"
#include "core/trace/json.h"

namespace retrograd::cli {
namespace {

struct CompareArguments {
  std::string a, b, weightsB, format = "text";
  double tolerance = 1e-4;
  bool doubleB = false;
  std::optional<std::uint64_t> seedB;
  std::optional<Device> deviceB;
  std::size_t rows = 20;
  InputOptions input;
};

nlohmann::ordered_json number(double x) { return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json("inf"); }

nlohmann::ordered_json rowJson(const Document& document, const RunDifference& row) {
  return {{"op", document.opName(row.opA)}, {"id", row.opA.index}, {"value", document.displayName(row.valueA)}, {"relative", number(row.relative)},
          {"largest", number(row.largest)}, {"norm_a", number(row.normA)}, {"norm_b", number(row.normB)}, {"note", row.note}};
}

void printRow(const Document& document, const RunDifference& row, const char* mark) {
  fmt::print("{:<2} {:>10.3g} {:>10.3g}  {:<16} #{} {}{}\n", mark, row.relative, row.largest, document.displayName(row.valueA), row.opA.index,
             document.opName(row.opA), row.note.empty() ? "" : "  (" + row.note + ")");
}

/// B on what A ran on, unless told otherwise, so that only what is asked about differs.
std::shared_ptr<const Analysis> openB(const CompareArguments& arguments, const Analysis& a, const Progress& progress) {
  const auto& path = arguments.b.empty() ? arguments.a : arguments.b;
  requireFile(path);
  auto reading = arguments.input.forReading();  // a file that is traced is so on the first one's inputs
  reading.inputs = a.inputs;
  reading.seed = arguments.seedB.value_or(a.seed);
  auto file = readModel(path, reading, progress);
  if (!arguments.weightsB.empty()) replaceWeights(file, arguments.weightsB);
  auto options = arguments.input.forFile(file);
  options.inDouble = arguments.doubleB;
  options.seed = arguments.seedB.value_or(a.seed);
  options.device = arguments.deviceB ? arguments.deviceB : std::optional(a.device);
  options.inputs = a.inputs;
  options.numbers = a.numbers;
  options.cotangents = a.cotangents;
  return analyse(std::move(file), options, progress);
}

int run(const CompareArguments& arguments, const Progress& progress) {
  requireToRun(arguments.input.device);
  requireToRun(arguments.deviceB);
  const auto a = open(arguments.a, arguments.input, progress);
  const auto b = openB(arguments, *a, progress);
  if (reportProblems(a->problems) || reportProblems(b->problems)) return badInputOrUse;
  const auto comparison = compareRuns(*a, *b, arguments.tolerance, {}, progress);
  const auto& document = *a->document;
  if (arguments.format == "json") {
    nlohmann::ordered_json json{{"a", arguments.a}, {"b", arguments.b.empty() ? arguments.a : arguments.b}, {"tolerance", arguments.tolerance},
                                {"largest", number(comparison.largest)}, {"first_divergence", nullptr}, {"rows", nlohmann::ordered_json::array()},
                                {"only_in_a", comparison.onlyInA.size()}, {"only_in_b", comparison.onlyInB.size()}};
    if (comparison.firstDivergence) json["first_divergence"] = rowJson(document, comparison.rows[*comparison.firstDivergence]);
    for (const auto& row : comparison.rows) json["rows"].push_back(rowJson(document, row));
    fmt::print("{}\n", dumpJson(json, 1));
  } else {
    fmt::print("   {:>10} {:>10}  value\n", "relative", "largest");
    const auto first = comparison.firstDivergence.value_or(0);
    const auto begin = first > 3 ? first - 3 : 0;
    for (std::size_t i = begin; i < std::min(comparison.rows.size(), begin + arguments.rows); ++i)
      printRow(document, comparison.rows[i], comparison.firstDivergence == i ? "=>" : "");
    fmt::print("{} values compared, largest relative difference {:.3g}; {} op(s) only in the first, {} only in the second\n", comparison.rows.size(),
               comparison.largest, comparison.onlyInA.size(), comparison.onlyInB.size());
    if (comparison.firstDivergence) fmt::print("they part at #{} {}\n", comparison.rows[first].opA.index, document.opName(comparison.rows[first].opA));
  }
  return comparison.firstDivergence ? checkFailed : allWell;
}

Run setup(CLI::App& app) {
  auto arguments = std::make_shared<CompareArguments>();
  app.add_option("a", arguments->a, "a model file or a session")->required();
  app.add_option("b", arguments->b, "another (default: the same one)");
  app.add_option("--tolerance", arguments->tolerance, "relative difference at which two values part")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_flag("--double", arguments->doubleB, "run the second in double precision");
  addDevice(app, arguments->deviceB, "--device-b", "device of the second (default: that of the first)");
  app.add_option("--seed-b", arguments->seedB, "seed of the second's random ops");
  app.add_option("--weights-b", arguments->weightsB, "safetensors file with other weights for the second, by their qualified names");
  app.add_option("--rows", arguments->rows, "rows of the table around the first divergence")->capture_default_str();
  addFormat(app, arguments->format);
  arguments->input.addTo(app);
  return [arguments](const Progress& progress) { return run(*arguments, progress); };
}

const Registration registration("compare", "run two models, or one in two ways, and find the first op where they part", setup);

}  // namespace
}  // namespace retrograd::cli
