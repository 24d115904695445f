#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "app/cli/output.h"
#include "core/torch/checking/reference.h"
#include "core/torch/checking/save.h"
#include "core/torch/session/session.h"
#include "core/trace/print/printer.h"

namespace retrograd::cli {
namespace {

struct RunArguments {
  std::string file, save, until;
  bool synchronous = false;
  InputOptions input;
};

/// Position after the op that `text` names: its id, the name of one of its outputs, or the first op of that name.
std::size_t positionAfter(const Session& session, const std::string& text) {
  const auto& document = *session.analysis().document;
  std::int32_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool isId = error == std::errc() && *end == '\0';
  std::optional<std::size_t> byOp;
  for (std::size_t p = 0; p < session.size(); ++p) {
    const auto op = session.opAt(p);
    if (isId && op.index == id) return p + 1;
    for (auto output : document.outputs(op))
      if (output && document.displayName(output) == text) return p + 1;
    const auto name = document.opName(op);
    if (!byOp && (name == text || document.symbol(document.boundSymbol(op).symbol).name == text)) byOp = p + 1;
  }
  if (!byOp) throw Error(ErrorCode::badUse, "no op of forward or backward has this id, output or name", text);
  return *byOp;
}

void printTable(const Session& session) {
  const auto& measures = session.measures();
  const auto& document = *session.analysis().document;
  fmt::print("{:>6}  {:>8}  {:>10}  {:>12}  {:>12}  op\n", "#", "id", "ms", "bytes", "live bytes");
  double forward = 0, backward = 0;
  for (std::size_t p = 0; p < session.position(); ++p) {
    const auto& m = measures[p];
    const auto op = session.opAt(p);
    if (p == session.forwardSize()) fmt::print("------  backward\n");
    fmt::print("{:>6}  {:>8}  {:>10.3f}  {:>12}  {:>12}  {}\n", p, op.index, m.seconds * 1e3, m.outputBytes, m.liveBytes,
               printCall(document, op));
    (p < session.forwardSize() ? forward : backward) += m.seconds;
  }
  fmt::print("forward {:.3f} ms, backward {:.3f} ms, peak {} bytes\n", forward * 1e3, backward * 1e3, session.peakBytes());
}

/// Of a run on a GPU: what LibTorch's allocator gave out and held after the op of the greatest use.
void printAllocator(const Session& session) {
  OpMeasure most;
  for (std::size_t p = 0; p < session.position(); ++p)
    if (session.measures()[p].allocated > most.allocated) most = session.measures()[p];
  if (most.allocated > 0) fmt::print("allocator at its fullest: {} bytes given out, {} bytes held\n", most.allocated, most.reserved);
}

int run(const RunArguments& arguments, const Progress& progress) {
  requireToRun(arguments.input.device);
  const auto analysis = open(arguments.file, arguments.input, progress);
  for (const auto& source : analysis->inputSource) fmt::print("# {}\n", source);
  const bool broken = reportProblems(analysis->problems);
  if (!analysis->derived()) return broken ? badInputOrUse : checkFailed;
  SessionOptions options;
  options.keepHistory = false;
  options.threads = arguments.input.threads;
  options.synchronous = arguments.synchronous;
  Session session(analysis, options);
  const auto reason = session.runTo(arguments.until.empty() ? session.size() : positionAfter(session, arguments.until), progress);
  if (reason == StopReason::cancelled) throw Error(ErrorCode::cancelled, "cancelled");
  printTable(session);
  printAllocator(session);
  if (!arguments.save.empty()) saveRun(session, arguments.save);
  return allWell;
}

Run setup(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  app.add_option("file", arguments->file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session")->required();
  addOutput(app, "--save", arguments->save, "write inputs, cotangents, outputs, gradients, and buffers and inputs that were written, to this safetensors file");
  app.add_option("--until", arguments->until, "stop after this op: an id, the name of an output, or an op's name");
  app.add_flag("--synchronous", arguments->synchronous, "on a GPU: wait for each op, so that a failure is told of the op that caused it");
  arguments->input.addTo(app);
  return [arguments](const Progress& progress) { return run(*arguments, progress); };
}

const Registration registration("run", "run forward and backward, with time and bytes of each op", setup);

}  // namespace
}  // namespace retrograd::cli
