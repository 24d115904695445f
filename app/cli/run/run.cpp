#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "app/cli/parsing/terminal.h"
#include "core/base/near_names.h"
#include "core/base/number_text.h"
#include "core/base/op_name.h"
#include "core/questions/why.h"
#include "core/torch/execution/device.h"
#include "core/torch/judging/reference.h"
#include "core/torch/judging/write_reference.h"
#include "core/torch/session/session.h"
#include "core/torch/steps/optimizer_updates.h"
#include "core/trace/opaque.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"

namespace retrograd::cli {
namespace {

struct RunArguments {
  std::string file, save, until, format = "text";
  bool synchronous = false, updates = false;
  InputOptions input;
};

/// Position after the op that `text` names: its id (#12), the name of one of its outputs, or the first op of that name.
/// An id of the computation means the last forward op derived from it.
std::size_t positionAfter(const Session& session, const std::string& text) {
  const auto& document = *session.analysis().document;
  const auto id = text.starts_with('#') ? opNumber(text) : numberIn<std::int32_t>(text);
  std::optional<std::size_t> byOp, byOrigin;
  for (std::size_t p = 0; p < session.size(); ++p) {
    const auto op = session.opAt(p);
    if (id && op.index == *id) return p + 1;
    if (id && p < session.forwardSize() && document.boundSymbol(op).origin.op.index == *id) byOrigin = p + 1;
    for (auto output : document.outputs(op))
      if (output && document.displayName(output) == text) return p + 1;
    const auto name = document.opName(op);
    if (!byOp && (name == text || document.symbol(op).name == text)) byOp = p + 1;
  }
  if (byOrigin) return *byOrigin;
  if (!byOp)
    badUse(
        "no op of forward or backward has this id, output or name" + didYouMean(text, valueNames(session.analysis())),
        text);
  return *byOp;
}

/// Of an op that did not run: why not; empty for others.
std::string whyNotRun(const Analysis& analysis, BoundSymbolId op) {
  const auto& left = analysis.leftOut;
  if (!left || !left->isLeftOut(op)) return {};
  const auto outputs = analysis.document->outputs(op);
  const auto isGiven = [&](ValueId output) { return left->filled.contains(output); };
  if (isOpaque(*analysis.document, op))
    return std::any_of(outputs.begin(), outputs.end(), isGiven) ? "  # not run: its result was given"
                                                                : "  # not run: opaque";
  for (const auto output : outputs)
    if (const auto reason = left->reason(output))
      return fmt::format("  # not run: depends on {}", analysis.document->opName(reason));
  return "  # not run";
}

void printTable(const Session& session) {
  const auto& measures = session.measures();
  const auto& document = *session.analysis().document;
  fmt::print("{:>6}  {:>10}  {:>12}  {:>12}  {:>7}  op\n", "step", "ms", "bytes", "live bytes", "id");
  double forward = 0, backward = 0;
  for (std::size_t p = 0; p < session.position(); ++p) {
    const auto& m = measures[p];
    const auto op = session.opAt(p);
    if (p == session.forwardSize()) fmt::print("------  backward\n");
    fmt::print("{:>6}  {:>10.3f}  {:>12}  {:>12}  {:>7}  {}\n", p + 1, m.seconds * 1e3, m.outputBytes, m.liveBytes,
               fmt::format("#{}", op.index), printCall(document, op) + whyNotRun(session.analysis(), op));
    (p < session.forwardSize() ? forward : backward) += m.seconds;
  }
  fmt::print("forward {:.3f} ms, backward {:.3f} ms, peak {} bytes\n", forward * 1e3, backward * 1e3,
             session.peakBytes());
}

/// Of a run on a GPU: the most that LibTorch's allocator gave out and held.
void printAllocator(const Session& session) {
  const auto most = peakDeviceMemory(session.analysis().device);
  if (most.allocated > 0)
    fmt::print("allocator at its fullest: {} bytes given out, {} bytes held\n", most.allocated, most.reserved);
}

nlohmann::ordered_json reportOf(const RunArguments& arguments, const Session& session) {
  const auto& document = *session.analysis().document;
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (std::size_t p = 0; p < session.position(); ++p) {
    const auto& m = session.measures()[p];
    const auto op = session.opAt(p);
    steps.push_back({{"step", p + 1},
                     {"id", op.index},
                     {"op", document.opName(op)},
                     {"trace", p < session.forwardSize() ? "forward" : "backward"},
                     {"milliseconds", m.seconds * 1e3},
                     {"bytes", m.outputBytes},
                     {"live_bytes", m.liveBytes}});
  }
  return {{"file", arguments.file},
          {"steps", std::move(steps)},
          {"forward_steps", session.forwardSize()},
          {"all_steps", session.size()},
          {"peak_bytes", session.peakBytes()}};
}

/// Of a recording: what its optimizers did.
int runUpdates(const RunArguments& arguments, const Progress& progress) {
  if (!arguments.save.empty() || !arguments.until.empty())
    badUse("--updates shows a table: leave out --output and --until", arguments.file);
  const auto analysis = open(arguments.file, arguments.input, progress);
  const auto updates = optimizerUpdates(analysis, progress);
  clearProgress();
  if (arguments.format == "json") {
    nlohmann::ordered_json json{{"file", arguments.file}};
    json.update(jsonOf(updates, *analysis->document));
    fmt::print("{}\n", dumpJson(json, 1));
  } else {
    fmt::print("{}", textOf(updates, *analysis->document));
  }
  return updates.firstBad || !updates.incomplete.empty() ? checkFailed : allWell;
}

int runRun(const RunArguments& arguments, const Progress& progress) {
  requireToRun(arguments.input.device);
  if (arguments.updates) return runUpdates(arguments, progress);
  const auto analysis = open(arguments.file, arguments.input, progress);
  if (arguments.format == "text")
    for (const auto& source : analysis->inputSource) fmt::print("# {}\n", source);
  const bool broken = reportProblems(analysis->problems);
  if (!analysis->derived()) return broken ? badInputOrUse : checkFailed;
  SessionOptions options;
  options.historyBytes = 0;
  options.threads = arguments.input.threads;
  options.synchronous = arguments.synchronous;
  Session session(analysis, options);
  const auto reason =
      session.runTo(arguments.until.empty() ? session.size() : positionAfter(session, arguments.until), progress);
  if (reason == StopReason::cancelled) throw Error(ErrorCode::cancelled, "cancelled");
  clearProgress();
  if (arguments.format == "json") {
    fmt::print("{}\n", dumpJson(reportOf(arguments, session), 1));
  } else {
    printTable(session);
    printAllocator(session);
  }
  if (!arguments.save.empty()) saveRun(session, arguments.save);
  return allWell;
}

Run setUpRun(Parser parser) {
  auto arguments = std::make_shared<RunArguments>();
  parser
      .add("file", arguments->file, "a model (.pt2, TorchScript, printed traces), a .retrograd session or a recording")
      .required();
  addOutput(
      parser, "-o,--output", arguments->save,
      "write inputs, cotangents, outputs, gradients and written buffers to this safetensors file, as a reference");
  addOldOutput(parser, "--save", arguments->save);
  parser.add("--until", arguments->until,
             "stop after this op: its id (#12), the name of an output, or the name of an op");
  parser.flag("--synchronous", arguments->synchronous,
              "on a GPU: wait for each op, so that an error names the op that caused it");
  parser.flag(
      "--updates", arguments->updates,
      "of a recording: norms of gradient, weight and update, clip factor and moments of each parameter, and what made "
      "the first NaN or infinity");
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) { return runRun(*arguments, progress); };
}

const Registration registrationRun("run", "run forward and backward, with time and bytes of each op", setUpRun);

}  // namespace
}  // namespace retrograd::cli
