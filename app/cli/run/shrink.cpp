#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "core/export/export.h"
#include "core/formats/pt2/pt2_write.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/process/child.h"
#include "core/torch/experiments/shrink.h"
#include "core/torch/reading/session_file.h"
#include "core/trace/print/json.h"
#include "core/trace/source.h"

namespace fs = std::filesystem;

namespace retrograd::cli {
namespace {

struct ShrinkArguments {
  std::string file, out, reference, command, format = "text";
  bool nan = false, inDouble = false;
  double tolerance = 1e-3, timeout = 600;
  std::size_t tests = 400;
  InputOptions input;
};

/// Writes what PyTorch runs: a script, with its tensors next to it.
void writeScript(const Analysis& analysis, const std::string& path, const Progress& progress) {
  const auto* format = findExportFormat("python");
  if (!format) throw Error(ErrorCode::internal, "the script format is not there", path);
  const auto kinds = analysis.derived() ? format->traces : std::vector<TraceKind>{TraceKind::computation};
  exportFile(*format, ExportRequest{analysis, tracesOf(analysis, kinds), {}, path, {}}, progress);
}

/// Writes the .pt2; where something in it cannot be, the reason is the result.
std::string writeModel(const Analysis& analysis, const std::string& path) {
  try {
    writePt2(analysis.file, path);
    return {};
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unsupportedOp) throw;
    return e.what();
  }
}

/// A folder for the scripts that a command is given, gone afterwards.
struct CandidateFolder {
  fs::path path;
  CandidateFolder() {
    static std::atomic<int> count{0};
    path = fs::temp_directory_path() / fmt::format("retrograd-shrink-{}-{}", ::getpid(), ++count);
    fs::create_directories(path);
  }
  ~CandidateFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::string quoted(const std::string& path) {
  std::string text = "'";
  for (const char c : path) c == '\'' ? text += "'\\''" : text += c;
  return text + "'";
}

/// Runs the command with each candidate's script. The fault shows where it ends as it does for the whole graph, which
/// must not be 0.
class CommandTest {
 public:
  CommandTest(std::string command, double limit, Progress progress)
      : command_(std::move(command)), limit_(limit), progress_(std::move(progress)) {}

  bool operator()(const std::shared_ptr<const Analysis>& candidate) {
    const auto script = (folder_.path / "candidate.py").string();
    writeScript(*candidate, script, progress_);
    auto command = command_;
    const auto place = command.find("{}");
    if (place == std::string::npos) command += " " + quoted(script);
    else command.replace(place, 2, quoted(script));
    Child child({"/bin/sh", "-c", command}, {});
    const auto ending = child.await(std::chrono::duration<double>(limit_), progress_);
    if (!ending) badUse(fmt::format("took longer than {} seconds", limit_), command_);
    const auto code = ending->exitCode();
    if (whole_ < 0) whole_ = code;
    return code != 0 && code == whole_;
  }

 private:
  std::string command_;
  double limit_;
  Progress progress_;
  CandidateFolder folder_;
  int whole_ = -1;
};

FaultTest faultTest(const ShrinkArguments& arguments, const Progress& progress) {
  const int chosen = arguments.nan + arguments.inDouble + !arguments.reference.empty() + !arguments.command.empty();
  if (chosen != 1)
    badUse("say what the fault is: one of --nan, --double, --reference FILE, --command COMMAND", "shrink");
  if (arguments.nan) return holdsNaN();
  if (arguments.inDouble) return differsFromDouble(arguments.tolerance);
  if (!arguments.reference.empty())
    return differsFrom(readSafetensors(arguments.reference).tensors, arguments.tolerance);
  return [test = std::make_shared<CommandTest>(arguments.command, arguments.timeout, progress)](const auto& candidate) {
    return (*test)(candidate);
  };
}

std::string lineOf(const Document& document, BoundSymbolId op) {
  const auto* frame = shownFrame(sourceOf(document, op));
  return frame ? fmt::format("{}:{}", frame->file, frame->line) : "";
}

int runShrink(const ShrinkArguments& arguments, const Progress& progress) {
  auto test = faultTest(arguments, progress);
  requireToRun(arguments.input.device);
  const auto analysis = open(arguments.file, arguments.input, progress);
  if (reportProblems(analysis->problems)) return badInputOrUse;
  const auto shrunk = shrink(*analysis, test, arguments.tests, progress);
  const auto out =
      arguments.out.empty() ? fs::path(arguments.file).replace_extension().string() + "-shrunk" : arguments.out;
  writeScript(*shrunk.candidate, out + ".py", progress);
  SaveSessionOptions save;
  save.embed = true;
  saveSession(*shrunk.candidate, out + ".retrograd", save, progress);
  const auto refusal = writeModel(*shrunk.candidate, out + ".pt2");
  if (!refusal.empty()) fmt::print(stderr, "note: no .pt2 was written: {}\n", refusal);
  const auto& document = *analysis->document;
  if (arguments.format == "json") {
    nlohmann::ordered_json json{{"file", arguments.file},
                                {"ops", nlohmann::ordered_json::array()},
                                {"of", analysis->computation().trace.ops.size()},
                                {"tests", shrunk.tests},
                                {"script", out + ".py"},
                                {"session", out + ".retrograd"},
                                {"model", nullptr}};
    if (refusal.empty()) json["model"] = out + ".pt2";
    for (const auto op : shrunk.ops)
      json["ops"].push_back({{"id", op.index}, {"op", document.opName(op)}, {"source", lineOf(document, op)}});
    fmt::print("{}\n", dumpJson(json, 1));
    return allWell;
  }
  fmt::print("{} of {} ops show the fault ({} ranges tried):\n", shrunk.ops.size(),
             analysis->computation().trace.ops.size(), shrunk.tests);
  for (const auto op : shrunk.ops) fmt::print("  #{} {}  {}\n", op.index, document.opName(op), lineOf(document, op));
  fmt::print("{}: runs them in PyTorch\n{}: opens them here, as they ran\n", out + ".py", out + ".retrograd");
  if (refusal.empty()) fmt::print("{}: for torch.export.load\n", out + ".pt2");
  return allWell;
}

Run setUpShrink(Parser parser) {
  auto arguments = std::make_shared<ShrinkArguments>();
  parser.add("file", arguments->file, "a model, a repro script or its folder").required();
  parser.flag("--nan", arguments->nan, "the fault is a NaN in outputs or gradients");
  parser.flag("--double", arguments->inDouble, "the fault is a difference from the same ops in double precision");
  parser.add("--reference", arguments->reference,
             "the fault is a difference from values of this safetensors file, by the names of the graph's values");
  parser.add("--command", arguments->command,
             "the fault is that this command fails: it gets a PyTorch script of the ops instead of {} (or at its end), "
             "and has to end "
             "as it does for the whole graph");
  parser.add("--tolerance", arguments->tolerance, "relative difference at which values differ")
      .zeroOrMore()
      .showDefault();
  parser.add("--timeout", arguments->timeout, "seconds the command may take").aboveZero().showDefault();
  parser.add("--tests", arguments->tests, "ranges to try at most").aboveZero().showDefault();
  parser.add(
      "-o,--output", arguments->out,
      "beginning of the names to write: OUT.py, OUT.pt2 and OUT.retrograd (default: the file's name with -shrunk)");
  parser.add("--out", arguments->out).hidden();
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) { return runShrink(*arguments, progress); };
}

const Registration registrationShrink(
    "shrink", "find the smallest range of ops that still shows a fault, and write it as a script", setUpShrink);

}  // namespace
}  // namespace retrograd::cli
