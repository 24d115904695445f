#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "app/cli/output.h"
#include "core/trace/print/json.h"
#include "views/window/app_window.h"

namespace retrograd::cli {
namespace {

Run setup(CLI::App& app) {
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  auto options = std::make_shared<PictureOptions>();
  auto trace = std::make_shared<std::string>("joint"), format = std::make_shared<std::string>("text");
  app.add_option("file", paths->first, "a model (.pt2, TorchScript, printed traces) or a .retrograd session; empty for the start page")->required();
  addOutput(app, "picture,-o,--output", paths->second, "PNG file to write")->required();
  app.add_flag("--dark", options->dark, "in the dark theme");
  app.add_flag("--high-contrast", options->highContrast, "in the theme of high contrast, light or dark");
  app.add_flag("--graph", options->graph, "the graph instead of the listings, around the selected op");
  app.add_option_function<std::string>(
         "--compare",
         [options](const std::string& file) {
           options->compare = true;
           options->compareWith = file;
         },
         "the window that compares traces: with this file, or with the same model with minimum saved bytes")
      ->expected(0, 1);
  app.add_option("--show", *trace, "the trace that the graph or the comparison is of: computation, joint, forward or backward")
      ->check(CLI::IsMember({"computation", "joint", "forward", "backward"}));
  app.add_flag("--whole", options->whole, "the graph as a whole");
  app.add_flag("--open-all", options->openAll, "every group of the graph open");
  app.add_flag("--open", options->openAll)->group("");
  app.add_option("--select", options->select, "select the op that makes the value of this name");
  app.add_option("--do", options->commands, "give a command, such as step-over or walk-to-root; repeatable")->allow_extra_args(false);
  app.add_option("--filter", options->filter, "show only the ops that pass a filter (docs/filter.md)");
  app.add_option("--dock", options->docks, "bring a dock to the front, such as why or findings; repeatable")->allow_extra_args(false);
  app.add_option("--recorded", options->recorded, "compare recorded numbers (JSON of DebugMode) with those of the model")->type_name("FILE");
  app.add_option("--width", options->width, "pixels")->check(CLI::Range(320, 8000));
  app.add_option("--height", options->height, "pixels")->check(CLI::Range(240, 8000));
  addFormat(app, *format);
  return [paths, options, trace, format](const Progress&) {
    for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
      if (name(kind) == *trace) options->trace = kind;
    if (!renderWindowToPicture(paths->first, paths->second, *options)) throw Error(ErrorCode::io, "could not draw the window", paths->second);
    if (*format == "json")
      fmt::print("{}\n",
                 dumpJson(nlohmann::ordered_json{{"file", paths->second}, {"bytes", std::filesystem::file_size(paths->second)}, {"model", paths->first}}, 1));
    else fmt::print("{}\n", paths->second);
    return allWell;
  };
}

const Registration registration("picture", "draw the window with a model into a PNG file; needs no display", setup);

}  // namespace
}  // namespace retrograd::cli
