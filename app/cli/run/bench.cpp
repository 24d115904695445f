#include "core/torch/checking/bench.h"

#include <fmt/format.h>

#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/input.h"
#include "app/cli/parsing/options.h"
#include "core/layout/layout_report.h"
#include "core/torch/reading/formats.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct BenchArguments {
  std::string file, format = "text";
  int repeat = 5, curve = 0;
  bool layout = false;
  InputOptions input;
};

void print(const BenchReport& report) {
  fmt::print("{:<16} {:>12}\n", "step", "ms (median)");
  for (const auto& [step, seconds] : report.seconds) fmt::print("{:<16} {:>12.3f}\n", step, seconds * 1e3);
  fmt::print("ops              computation {}, joint {}, forward {}, backward {}, recomputed {}\n",
             report.ops.computation, report.ops.joint, report.ops.forward, report.ops.backward, report.recomputedOps);
  fmt::print("saved            {} bytes in {} bytes of storage\npeak             {} bytes\n", report.savedBytes,
             report.savedStorageBytes, report.peakBytes);
}

void print(const std::vector<CurvePoint>& curve) {
  fmt::print("{:>14} {:>14} {:>16} {:>14} {:>14} {:>14}\n", "budget", "saved bytes", "recomputed ops", "recompute ms",
             "backward ms", "peak bytes");
  for (const auto& point : curve)
    fmt::print("{:>14} {:>14} {:>16} {:>14.3f} {:>14.3f} {:>14}\n", point.budget, point.report.savedStorageBytes,
               point.report.recomputedOps, point.report.seconds.at("recompute") * 1e3,
               point.report.seconds.at("backward") * 1e3, point.report.peakBytes);
}

int runCurve(const BenchArguments& arguments, const Progress& progress) {
  const auto openPartitioned = [&](PartitionOptions::Kind kind, std::optional<std::int64_t> budget) {
    auto input = arguments.input;
    auto& partition = input.partition ? *input.partition : input.partition.emplace();
    partition.kind = kind;
    partition.budget = budget;
    return open(arguments.file, input, progress);
  };
  const auto curve = budgetCurve(openPartitioned, arguments.curve, arguments.repeat, progress);
  if (arguments.format == "json")
    fmt::print("{}\n", dumpJson(nlohmann::ordered_json{{"file", arguments.file}, {"budget_curve", toJson(curve)}}, 1));
  else print(curve);
  return allWell;
}

int runLayout(const BenchArguments& arguments, const Progress& progress) {
  const auto analysis = open(arguments.file, arguments.input, progress);
  const auto& trace = analysis->derived() ? analysis->joint : analysis->computation().trace;
  nlohmann::ordered_json json{{"file", arguments.file}, {"trace", name(trace.kind)}};
  if (arguments.format == "text")
    fmt::print("{:<10} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8} {:>10} {:>10} {:>10} {:>9}\n", name(trace.kind), "boxes",
               "lines", "crossings", "saved's", "edges", "rows", "length", "longest", "saved's", "ms");
  for (const bool allOpen : {false, true}) {
    const auto report = layout::reportLayout(*analysis->document, trace, &analysis->computation(), allOpen, progress);
    json[allOpen ? "all_open" : "at_first"] = layout::toJson(report);
    if (arguments.format == "text")
      fmt::print("{:<10} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8} {:>10.0f} {:>10.0f} {:>10.0f} {:>9.1f}\n",
                 allOpen ? "all open" : "at first", report.boxes, report.lines, report.crossings, report.savedCrossings,
                 report.edges, report.rows, report.flowLength, report.longestFlow, report.savedLength,
                 (report.treeSeconds + report.layoutSeconds) * 1e3);
  }
  if (arguments.format == "json") fmt::print("{}\n", dumpJson(json, 1));
  return allWell;
}

Run setUpBench(Parser parser) {
  auto arguments = std::make_shared<BenchArguments>();
  parser.add("file", arguments->file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session").required();
  parser.add("--repeat", arguments->repeat, "how many times to measure; the median counts").aboveZero().showDefault();
  parser
      .add("--budget-curve", arguments->curve,
           "instead of the report: bytes saved against time recomputed, at this many budgets")
      .range(2, 1000);
  parser.flag(
      "--layout", arguments->layout,
      "instead of the report: how tangled the graph is (crossings, rows that edges span, their lengths in pixels)");
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) {
    if (arguments->layout) return runLayout(*arguments, progress);
    if (!formatOf(inputFile(arguments->file)).isDerived)
      badUse("is a recording: nothing is derived of it; `retrograd run` times its ops", arguments->file);
    requireToRun(arguments->input.device);
    if (arguments->curve) return runCurve(*arguments, progress);
    const auto report =
        bench([&] { return open(arguments->file, arguments->input, progress); }, arguments->repeat, progress);
    if (arguments->format == "json") fmt::print("{}\n", dumpJson(toJson(report), 1));
    else print(report);
    return allWell;
  };
}

const Registration registrationBench(
    "bench", "measure reading, deriving and running, and LibTorch's eager autograd for comparison", setUpBench);

}  // namespace
}  // namespace retrograd::cli
