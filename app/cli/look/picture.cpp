#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/print/json.h"
#include "views/window/app_window.h"

namespace retrograd::cli {
namespace {

Run setUpPicture(Parser parser) {
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  auto options = std::make_shared<PictureOptions>();
  auto input = std::make_shared<InputOptions>();
  auto trace = std::make_shared<std::string>("joint"), format = std::make_shared<std::string>("text");
  parser
      .add(
          "file", paths->first,
          "a model (.pt2, TorchScript, printed traces), a .retrograd session or a memory snapshot; empty for the start "
          "page")
      .required();
  addOutput(parser, "picture,-o,--output", paths->second, "PNG file to write").required();
  parser.flag("--dark", options->dark, "in the dark theme");
  parser.flag("--high-contrast", options->highContrast, "in the theme of high contrast, light or dark");
  parser.flag("--graph", options->graph, "the graph instead of the listings, around the selected op");
  parser
      .add("--compare",
           "the window that compares traces: with this file, or with the same model with minimum saved bytes",
           [options](const std::string& file) {
             options->compare = true;
             options->compareWith = file;
           })
      .optionalValue();
  parser
      .add("--show", *trace,
           "the trace to show in the graph or the comparison: computation, joint, forward or backward")
      .oneOf({"computation", "joint", "forward", "backward"});
  parser.flag("--whole", options->whole, "the graph as a whole");
  parser.flag("--open-all", options->openAll, "every group of the graph open");
  parser.flag("--open", options->openAll).hidden();
  parser.add("--select", options->select, "select the op that makes the value of this name");
  parser.add("--do", options->commands, "give a command, such as step-over or walk-to-root; repeatable").repeatable();
  parser.add("--filter", options->filter, "show only the ops that pass a filter (docs/filter.md)");
  parser.add("--dock", options->docks, "bring a dock to the front, such as why or findings; repeatable").repeatable();
  parser.add("--recorded", options->recorded, "compare recorded numbers (JSON of DebugMode) with those of the model")
      .typeName("FILE");
  parser
      .add("--memory", options->memory,
           "open a memory snapshot next to the model; given twice, compare it with a second one")
      .typeName("SNAPSHOT");
  parser.add("--width", options->width, "pixels").range(320, 8000);
  parser.add("--height", options->height, "pixels").range(240, 8000);
  input->addTo(parser);
  addFormat(parser, *format);
  return [paths, options, input, trace, format](const Progress&) {
    requireToRun(input->device);
    setThreads(input->threads);
    options->model = *input;
    options->model.path = paths->first;
    for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
      if (name(kind) == *trace) options->trace = kind;
    if (!renderWindowToPicture(*options, paths->second))
      throw Error(ErrorCode::io, "could not draw the window", paths->second);
    if (*format == "json")
      fmt::print("{}\n", dumpJson(nlohmann::ordered_json{{"file", paths->second},
                                                         {"bytes", std::filesystem::file_size(paths->second)},
                                                         {"model", paths->first}},
                                  1));
    else fmt::print("{}\n", paths->second);
    return allWell;
  };
}

const Registration registrationPicture("picture", "draw the window with a model into a PNG file; needs no display",
                                       setUpPicture);

}  // namespace
}  // namespace retrograd::cli
