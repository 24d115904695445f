#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/folder/folder.h"
#include "core/questions/compare_numbers.h"
#include "core/torch/experiments/debug_mode_numbers.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct NumbersArguments {
  std::string a, b, format = "text";
  double tolerance = 1e-5;
  std::size_t rows = 12;
  InputOptions input;
};

/// A side of the comparison: what was recorded, or a model that is run.
struct Side {
  DebugModeRun run;
  std::shared_ptr<const Analysis> analysis;  ///< null for a recording
};

bool isDebugModeLog(const std::string& path) {
  requireFile(path);
  return !std::filesystem::is_directory(path) && looksLikeDebugMode(mapFile(path).text());
}

Side openSide(const std::string& path, const InputOptions& input, const Progress& progress) {
  if (isDebugModeLog(path)) return {readDebugMode(path, progress), nullptr};
  requireToRun(input.device);
  Side side;
  side.analysis = open(path, input, progress);
  const bool broken = reportProblems(side.analysis->problems);
  if (broken || !side.analysis->derived()) badUse("it cannot be run", path);
  side.run = debugModeNumbers(*side.analysis, progress);
  return side;
}

std::string normsText(const std::vector<DebugModeTensor>& tensors) {
  std::string text;
  for (const auto& tensor : tensors)
    text += (text.empty() ? "" : ", ") + (tensor.hasNorm ? fmt::format("{:.9g}", tensor.norm) : "-");
  return text.empty() ? "-" : text;
}

/// "aten::gelu in blocks.1, train.py:20 in forward (op 45, #312 gelu_1)"
std::string placeText(const Side& side, std::size_t index) {
  const auto& call = side.run.calls[index];
  auto text = call.op;
  if (!call.module.empty()) text += " in " + call.module;
  if (!call.line.empty()) text += ", " + call.line;
  if (side.analysis && call.position >= 0) {
    const auto op = side.analysis->joint.ops[call.position];
    text += fmt::format(" (#{} {})", op.index, side.analysis->document->opName(op));
  } else {
    text += fmt::format(" (call {})", index);
  }
  return text;
}

std::string rowText(const Side& a, const Side& b, const PairedCalls& row, const char* mark) {
  const auto& call = row.a ? a.run.calls[*row.a] : b.run.calls[*row.b];
  return fmt::format(
      "{:<2} {:>10}  {:>24}  {:>24}  {}\n", mark, row.compared ? fmt::format("{:.3g}", row.difference) : "",
      row.a ? normsText(a.run.calls[*row.a].outputs) : "", row.b ? normsText(b.run.calls[*row.b].outputs) : "",
      call.op + (call.module.empty() ? "" : "  " + call.module));
}

void printDifference(const Side& a, const Side& b, const NumberComparison& comparison) {
  const auto& first = *comparison.first;
  fmt::print("first difference: {:.3g}\n  a: {}\n  b: {}\n", comparison.rows[first.row].difference,
             placeText(a, first.a), placeText(b, first.b));
  if (!first.input) {
    fmt::print("its inputs agree, as far as their norms are known\n");
    return;
  }
  fmt::print("its input {} differs already, which was made by\n", *first.input);
  if (first.madeInA)
    fmt::print("  a: {}{}\n", placeText(a, *first.madeInA), first.aloneInA ? ", which b does not run" : "");
  if (first.madeInB)
    fmt::print("  b: {}{}\n", placeText(b, *first.madeInB), first.aloneInB ? ", which a does not run" : "");
}

nlohmann::ordered_json number(double x) {
  if (std::isnan(x)) return "nan";
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(x > 0 ? "inf" : "-inf");
}

nlohmann::ordered_json normsJson(const std::vector<DebugModeTensor>& tensors) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& tensor : tensors) list.push_back(tensor.hasNorm ? number(tensor.norm) : nullptr);
  return list;
}

nlohmann::ordered_json callJson(const Side& side, std::optional<std::size_t> index) {
  if (!index) return nullptr;
  const auto& call = side.run.calls[*index];
  nlohmann::ordered_json json{{"call", *index},
                              {"op", call.op},
                              {"module", call.module},
                              {"line", call.line},
                              {"norms", normsJson(call.outputs)}};
  if (!side.analysis || call.position < 0) return json;
  const auto op = side.analysis->joint.ops[call.position];
  json["id"] = op.index;
  json["trace_op"] = side.analysis->document->opName(op);
  return json;
}

nlohmann::ordered_json toJson(const Side& a, const Side& b, const NumbersArguments& arguments,
                              const NumberComparison& comparison) {
  nlohmann::ordered_json json{{"a", a.run.path},
                              {"b", b.run.path},
                              {"tolerance", arguments.tolerance},
                              {"compared", comparison.compared},
                              {"only_in_a", comparison.onlyInA},
                              {"only_in_b", comparison.onlyInB},
                              {"largest", number(comparison.largest)},
                              {"first_difference", nullptr},
                              {"rows", nlohmann::ordered_json::array()}};
  if (comparison.first) {
    const auto& first = *comparison.first;
    json["first_difference"] = {{"difference", number(comparison.rows[first.row].difference)},
                                {"a", callJson(a, first.a)},
                                {"b", callJson(b, first.b)},
                                {"input", nullptr},
                                {"made_in_a", callJson(a, first.madeInA)},
                                {"made_in_b", callJson(b, first.madeInB)},
                                {"alone_in_a", first.aloneInA},
                                {"alone_in_b", first.aloneInB}};
    if (first.input) json["first_difference"]["input"] = *first.input;
  }
  for (const auto& row : comparison.rows)
    json["rows"].push_back({{"a", callJson(a, row.a)},
                            {"b", callJson(b, row.b)},
                            {"difference", row.compared ? number(row.difference) : nlohmann::ordered_json(nullptr)}});
  return json;
}

void print(const Side& a, const Side& b, const NumbersArguments& arguments, const NumberComparison& comparison) {
  const auto first = comparison.first ? comparison.first->row : 0;
  const auto begin = first > arguments.rows / 2 ? first - arguments.rows / 2 : 0;
  fmt::print("   {:>10}  {:>24}  {:>24}  op\n", "relative", "a", "b");
  for (std::size_t i = begin; i < std::min(comparison.rows.size(), begin + arguments.rows); ++i)
    fmt::print("{}", rowText(a, b, comparison.rows[i], comparison.first && i == first ? "=>" : ""));
  fmt::print("{} calls compared, largest relative difference {:.3g}; {} call(s) only in a, {} only in b\n",
             comparison.compared, comparison.largest, comparison.onlyInA, comparison.onlyInB);
  if (comparison.first) printDifference(a, b, comparison);
}

/// Whether a path is the whole folder of a captured step, rather than that of one of its graphs.
bool isStep(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(path) / "retrograd.json", ignored);
}

/// The recording in a captured step's folder. Throws where the folder has none.
std::string numbersIn(const std::string& folder) {
  const auto recorded = readRecordedFolder(folder);
  if (recorded.numbers.empty() || !std::filesystem::exists(recorded.numbers))
    badUse("holds no recorded numbers: PyTorch 2.15 records them when a step fails", folder);
  return recorded.numbers;
}

/// A captured step represents its numbers: alone they are compared with its own model, else with another recording,
/// step or model. Next to a recording it represents its model.
NumbersArguments meant(NumbersArguments arguments) {
  if (arguments.b.empty()) {
    requireFile(arguments.a);
    if (!isStep(arguments.a)) badUse("say what to compare it with: another recording or a model", arguments.a);
    arguments.b = arguments.a;
    arguments.a = numbersIn(arguments.a);
  } else if (isStep(arguments.a) && !isDebugModeLog(arguments.b)) {
    arguments.a = numbersIn(arguments.a);
    if (isStep(arguments.b)) arguments.b = numbersIn(arguments.b);
  }
  return arguments;
}

int runNumbers(const NumbersArguments& given, const Progress& progress) {
  const auto arguments = meant(given);
  const auto a = openSide(arguments.a, arguments.input, progress);
  const auto b = openSide(arguments.b, arguments.input, progress);
  if (a.run.hashes != b.run.hashes)
    badUse("holds hashes (hash_tensor), which say nothing but that tensors are equal; record norms: hash_fn=\"norm\"",
           a.run.hashes ? arguments.a : arguments.b);
  const auto comparison = compareNumbers(a.run, b.run, arguments.tolerance);
  if (comparison.compared == 0)
    badUse("no op of the one occurs in the other, so that nothing could be compared", arguments.b);
  if (arguments.format == "json") fmt::print("{}\n", dumpJson(toJson(a, b, arguments, comparison), 1));
  else print(a, b, arguments, comparison);
  return comparison.first ? checkFailed : allWell;
}

Run setUpNumbers(Parser parser) {
  auto arguments = std::make_shared<NumbersArguments>();
  parser
      .add("a", arguments->a,
           "a recording of PyTorch's DebugMode (save_logs), a model, which is run, or a captured step's folder with "
           "both")
      .required();
  parser.add(
      "b", arguments->b,
      "another recording, step or model; without it the numbers of a captured step are compared with its own model");
  parser.add("--tolerance", arguments->tolerance, "relative difference at which two norms differ")
      .zeroOrMore()
      .showDefault();
  parser.add("--rows", arguments->rows, "rows of the table around the first difference").showDefault();
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) { return runNumbers(*arguments, progress); };
}

const Registration registrationNumbers(
    "numbers", "compare recorded numbers with a model or another recording, and find the first that differs",
    setUpNumbers);

}  // namespace
}  // namespace retrograd::cli
