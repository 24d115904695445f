#include "core/export/export.h"
#include "core/trace/print/printer.h"
#include "core/trace/python_text.h"

namespace retrograd {
namespace {

/// The printed traces, as `retrograd trace` writes them.
void writeText(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  const auto& analysis = request.analysis;
  for (const auto& line : analysis.inputSource) sink.write("# " + oneLine(line) + "\n");
  for (const auto& reason : analysis.dataDependent)
    sink.write("# the traces hold for these inputs only: " + oneLine(reason) + "\n");
  PrintOptions options;
  options.computation = &analysis.computation();
  options.numbers = &analysis.request.numbers;
  for (const auto* trace : request.traces) {
    progress.check();
    if (trace != request.traces.front()) sink.write("\n");
    sink.write(printTrace(*analysis.document, *trace, options));
  }
}

const ExportRegistration registrationText({.name = "text",
                                           .description = "printed traces, which read back in",
                                           .suffix = ".txt",
                                           .traces = {TraceKind::computation, TraceKind::joint, TraceKind::forward,
                                                      TraceKind::backward},
                                           .write = writeText});

}  // namespace
}  // namespace retrograd
