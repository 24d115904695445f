#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "core/export/export.h"
#include "core/formats/files/atomic_file.h"
#include "core/torch/session/session.h"

namespace retrograd::cli {
namespace {

struct ExportArguments {
  std::string file, to, out;
  std::vector<std::string> show;
  bool noRun = false;
  GraphDrawing drawing;
  InputOptions input;
};

std::string formatNames() {
  std::string names;
  for (const auto& format : exportFormats()) names += (names.empty() ? "" : ", ") + format.name;
  return names;
}

const ExportFormat& formatFor(const ExportArguments& arguments) {
  const auto* format = arguments.to.empty() ? exportFormatOf(arguments.out) : findExportFormat(arguments.to);
  if (!format)
    throw Error(ErrorCode::badUse,
                "name a format with --format (" + formatNames() + "), or an output file with a known ending with -o",
                "export");
  return *format;
}

std::vector<TraceKind> kindsFor(const ExportArguments& arguments, const ExportFormat& format) {
  if (arguments.show.empty()) return format.traces;
  std::vector<TraceKind> kinds;
  for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
    for (const auto& text : arguments.show)
      if (text == "all" || text == name(kind)) kinds.push_back(kind);
  return kinds;
}

std::vector<OpMeasure> measure(const std::shared_ptr<const Analysis>& analysis, int threads, const Progress& progress) {
  SessionOptions options;
  options.historyBytes = 0;
  options.threads = threads;
  Session session(analysis, options);
  if (session.runTo(session.size(), progress) == StopReason::cancelled) throw Error(ErrorCode::cancelled, "cancelled");
  return session.measures();
}

class StandardOutput final : public ExportSink {
 public:
  void write(std::string_view text) override {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) flushOutput();  // which gives the reason
  }
};

int runExport(const ExportArguments& arguments, const Progress& progress) {
  const auto& format = formatFor(arguments);
  const auto& drawing = arguments.drawing;
  if (!format.isDrawing && (drawing.dark || drawing.openAll || !drawing.open.empty() || drawing.scale != 1))
    throw Error(ErrorCode::badUse,
                "--open, --open-all, --dark and --scale are for pictures of the graph (svg, png, pdf)", "export");
  const bool wantsRun =
      format.run == ExportFormat::Run::needed || (format.run == ExportFormat::Run::wanted && !arguments.noRun);
  if (wantsRun) requireToRun(arguments.input.device);
  const auto analysis = open(arguments.file, arguments.input, progress);
  if (analysis->file.recording && format.name == "python")
    throw Error(ErrorCode::badUse,
                "is a recording: a script would not have its generators' states and opaque ops; `retrograd check` runs "
                "it again, and other formats show it",
                arguments.file);
  const bool broken = reportProblems(analysis->problems);
  ExportRequest request{*analysis,
                        tracesOf(*analysis, kindsFor(arguments, format)),
                        {},
                        isStandardOutput(arguments.out) ? "" : arguments.out,
                        arguments.drawing};
  if (wantsRun && analysis->derived()) request.measures = measure(analysis, arguments.input.threads, progress);
  if (request.path.empty()) {
    StandardOutput out;
    exportTo(out, format, request, progress);
    flushOutput();
  } else {
    exportFile(format, request, progress);
  }
  return broken ? badInputOrUse : allWell;
}

Run setUpExport(Parser parser) {
  auto arguments = std::make_shared<ExportArguments>();
  std::vector<std::string> names;
  for (const auto& format : exportFormats()) names.push_back(format.name);
  parser.add("file", arguments->file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session").required();
  parser.add("--format", arguments->to, "the format (default: from the name of the output file)").oneOf(names);
  parser.add("--to", arguments->to).oneOf(names).hidden();
  parser
      .add("--show", arguments->show,
           "computation, joint, forward, backward or all, comma separated (default: depends on the format)")
      .commaSeparated()
      .oneOf({"computation", "joint", "forward", "backward", "all"});
  addOutput(parser, "-o,--output", arguments->out, "the file to write (default, or -: standard output)");
  addOldOutput(parser, "--out", arguments->out);
  parser.flag("--no-run", arguments->noRun, "tables: do not run the model; times stay empty");
  parser.add("--open", arguments->drawing.open, "pictures: a module to show opened, by its path; repeatable")
      .repeatable();
  parser.flag("--open-all", arguments->drawing.openAll, "pictures: every group open");
  parser.flag("--dark", arguments->drawing.dark, "pictures: in the dark theme");
  parser.add("--scale", arguments->drawing.scale, "png: pixels for each of the canvas").range(0.1, 8.0).showDefault();
  std::string footer = "Formats:\n";
  for (const auto& format : exportFormats()) footer += fmt::format("  {:<10}{}\n", format.name, format.description);
  parser.footer(footer + "\nHow to save a model from PyTorch: retrograd help saving\n");
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) { return runExport(*arguments, progress); };
}

const Registration registrationExport("export",
                                      "write the traces as text, a PyTorch script, a graph, a table or a profile",
                                      setUpExport);

}  // namespace
}  // namespace retrograd::cli
