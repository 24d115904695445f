#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "core/trace/json.h"
#include "core/trace/printer.h"

namespace retrograd::cli {
namespace {

struct TraceOptions {
  std::string file, show = "all", format = "text";
  bool plain = false;
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

void print(const Analysis& analysis, const TraceOptions& options) {
  const auto traces = shown(analysis, options.show);
  if (options.format == "json") {
    TraceDocumentInfo info{options.file,
                           analysis.file.torchVersion,
                           &analysis.computation(),
                           analysis.derived() ? &analysis.forward : nullptr,
                           analysis.problems,
                           notes(analysis)};
    std::puts(dumpJson(traceDocument(*analysis.document, traces, info)).c_str());
    return;
  }
  for (const auto& note : notes(analysis)) fmt::print("# {}\n", note);
  PrintOptions printing;
  printing.del = printing.source = !options.plain;
  printing.computation = &analysis.computation();
  printing.numbers = &analysis.numbers;
  printing.guards = &analysis.file.guards;
  for (const auto* trace : traces) {
    if (trace != traces.front()) std::puts("");
    const auto text = printTrace(*analysis.document, *trace, printing);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

int run(const TraceOptions& options, const Progress& progress) {
  const auto analysis = open(options.file, options.input, progress);
  print(*analysis, options);
  if (reportProblems(analysis->problems)) return badInputOrUse;
  return allWell;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<TraceOptions>();
  app.add_option("file", options->file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session")->required();
  app.add_option("--show", options->show, "computation, joint, forward, backward or all")
      ->check(CLI::IsMember({"computation", "joint", "forward", "backward", "all"}))
      ->capture_default_str();
  addFormat(app, options->format);
  app.add_flag("--plain", options->plain, "text without source lines and del");
  options->input.addTo(app);
  return [options](const Progress& progress) { return run(*options, progress); };
}

const Registration registration("trace", "print the computation, joint, forward and backward traces of a model", setup);

}  // namespace
}  // namespace retrograd::cli
