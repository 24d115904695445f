#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "app/cli/look/trace_log.h"
#include "app/cli/look/trace_ranks.h"
#include "app/cli/look/trace_recording.h"
#include "app/cli/parsing/command.h"
#include "app/cli/parsing/input.h"
#include "app/cli/parsing/options.h"
#include "core/torch/reading/formats.h"
#include "core/trace/filter/filter.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"

namespace retrograd::cli {
namespace {

struct TraceOptions {
  std::string file, show = "all", format = "text", filter, phase;
  bool plain = false, numbers = false, ranks = false;
  InputOptions input;
};

std::vector<const Trace*> shown(const Analysis& analysis, const std::string& show) {
  std::vector<const Trace*> traces;
  for (const auto* trace : {&analysis.computation().trace, &analysis.joint, &analysis.forward, &analysis.backward}) {
    const bool isComputation = trace == &analysis.computation().trace;
    if ((show == "all" || show == name(trace->kind)) && (isComputation || analysis.derived())) traces.push_back(trace);
  }
  return traces;
}

std::vector<std::string> notes(const Analysis& analysis) {
  std::vector<std::string> all = analysis.inputSource;
  for (const auto& reason : analysis.dataDependent) all.push_back("the traces hold for these inputs only: " + reason);
  return all;
}

/// The same traces with the ops that pass, to be read and not to be run.
std::vector<Trace> filtered(const Analysis& analysis, const std::vector<const Trace*>& traces,
                            const std::string& text) {
  const auto filter = Filter::parse(text);
  FilterRun run(*analysis.document, filter, analysis.derived() ? &analysis.backward : nullptr);
  std::vector<Trace> parts;
  for (const auto* trace : traces) {
    parts.push_back(*trace);
    parts.back().ops = run.select(*trace);
    const auto border = trace->ops.begin() + std::min(trace->forwardCount, trace->ops.size());
    parts.back().forwardCount = static_cast<std::size_t>(
        std::count_if(trace->ops.begin(), border, [&](BoundSymbolId op) { return run.matches(op); }));
  }
  return parts;
}

void print(const Analysis& analysis, const TraceOptions& options) {
  auto traces = shown(analysis, options.show);
  std::vector<Trace> parts;
  auto told = notes(analysis);
  if (!options.filter.empty()) {
    parts = filtered(analysis, traces, options.filter);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      told.push_back(fmt::format("{}: {} of {} ops pass the filter", name(parts[i].kind), parts[i].ops.size(),
                                 traces[i]->ops.size()));
      traces[i] = &parts[i];
    }
  }
  if (options.format == "json") {
    TraceDocumentInfo info{options.file,
                           analysis.file.torchVersion,
                           &analysis.computation(),
                           analysis.derived() ? &analysis.forward : nullptr,
                           analysis.problems,
                           told};
    std::puts(dumpJson(traceDocument(*analysis.document, traces, info)).c_str());
    return;
  }
  for (const auto& note : told) fmt::print("# {}\n", note);
  PrintOptions printing;
  printing.source = !options.plain;
  printing.ids = options.numbers;
  printing.del = !options.plain && options.filter.empty();
  printing.computation = &analysis.computation();
  printing.numbers = &analysis.request.numbers;
  printing.guards = &analysis.file.guards;
  for (const auto* trace : traces) {
    if (trace != traces.front()) std::puts("");
    const auto text = printTrace(*analysis.document, *trace, printing);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

/// By op, whether it passes the filter; empty: all do.
std::vector<char> passing(const Analysis& analysis, const TraceOptions& options) {
  if (options.filter.empty()) return {};
  const auto filter = Filter::parse(options.filter);
  FilterRun run(*analysis.document, filter, &analysis.backward);
  std::vector<char> passes(analysis.document->boundSymbolCount(), 0);
  for (const auto op : run.select(analysis.joint)) passes[op.index] = 1;
  return passes;
}

int runTrace(const TraceOptions& options, const Progress& progress) {
  const auto format = formatOf(inputFile(options.file)).format;
  if (!options.phase.empty() && format != Format::recording)
    badUse("--phase is for a recording, a folder that retrograd.record wrote", options.file);
  if (!options.phase.empty() && (options.format != "text" || options.show != "all"))
    badUse("--phase is for the text of all phases: leave out --format json and --show", options.file);
  if (!options.filter.empty()) Filter::parse(options.filter);  // what is wrong with it is said before the file is read
  if (format == Format::job) {
    if (!options.filter.empty())
      badUse("--filter is for models, not for the graphs of a log of torch.compile", options.file);
    if (options.numbers) badUse("--numbers is for models, not for the graphs of a log of torch.compile", options.file);
    return traceLog(options.file, options.input.data.compile, options.input.data.rank, options.show, options.plain,
                    options.format, progress);
  }
  if (options.filter.empty() && traceDerivedText(options.file, options.show, options.plain, options.format, progress))
    return allWell;
  if (options.ranks) {
    if (format != Format::ranks) badUse("--ranks is for a folder with a recording of each rank", options.file);
    if (options.format != "text") badUse("--ranks prints text", options.file);
    printRanks(inputFile(options.file), progress);
    return allWell;
  }
  const auto analysis = open(options.file, options.input, progress);
  const bool isListed = analysis->file.recording && options.format == "text" && options.show == "all";
  if (isListed)
    printRecording(*analysis, {options.phase, passing(*analysis, options), !options.plain, options.numbers});
  else print(*analysis, options);
  if (reportProblems(analysis->problems)) return badInputOrUse;
  return allWell;
}

Run setUpTrace(Parser parser) {
  auto options = std::make_shared<TraceOptions>();
  parser
      .add("file", options->file,
           "a model (.pt2, TorchScript, printed traces), a .retrograd session, a recording, or a job's log")
      .required();
  parser.add("--show", options->show, "computation, joint, forward, backward or all")
      .oneOf({"computation", "joint", "forward", "backward", "all"})
      .showDefault();
  parser
      .add("--phase", options->phase,
           "of a recording: only forward, loss, backward, recompute, hook, accumulation, clip, optimizer or other")
      .oneOf({"forward", "loss", "backward", "recompute", "hook", "accumulation", "clip", "optimizer", "other"});
  parser.flag("--ranks", options->ranks,
              "of a recording of several ranks: one line where all run the same op, side by side where they part");
  addFormat(parser, options->format);
  parser.flag("--plain", options->plain, "text without source lines and del");
  parser.flag("--numbers", options->numbers, "text with the id of each op, such as #12, first in its comment");
  parser.add("--filter", options->filter,
             "print only the ops that pass a filter, such as 'role:gradient module:h.3 bytes>1M' (docs/filter.md)");
  options->input.addTo(parser);
  return [options](const Progress& progress) { return runTrace(*options, progress); };
}

const Registration registrationTrace("trace", "print the computation, joint, forward and backward traces of a model",
                                     setUpTrace);

}  // namespace
}  // namespace retrograd::cli
