#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/pipeline/pipeline_cuts.h"
#include "core/cut/json.h"
#include "core/torch/stages/stage_files.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct SplitArguments {
  CutOptions cut;
  std::string format = "text", out;
};

std::string countOf(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print(const CutModel& cut) {
  const auto& document = *cut.model.document;
  for (std::size_t s = 0; s < cut.split.stages.size(); ++s) {
    const auto parameters = stageParameters(cut.model, cut.split, s);
    std::int64_t bytes = 0;
    for (const auto& parameter : parameters) bytes += parameter.bytes;
    const auto& stage = cut.split.stages[s];
    fmt::print("stage {}: {}, {} ({} bytes)", s, countOf(stage.ops.size(), "op"),
               countOf(parameters.size(), "parameter"), bytes);
    if (!stage.ops.empty())
      fmt::print(", from #{} {}", stage.ops.front().index, document.text(document.boundSymbol(stage.ops.front()).name));
    if (stage.device) fmt::print(", on {}", toString(*stage.device));
    fmt::print("\n");
    for (const auto& edge : cut.split.edges)
      if (edge.destination == static_cast<int>(s)) {
        const auto described = describeEdge(cut.model, edge);
        fmt::print("  gets {} {}[{}], {} bytes, {}\n", described.name, described.dtype,
                   fmt::join(described.shape, ", "), described.bytes,
                   edge.source < 0 ? std::string("an input of the model") : fmt::format("from stage {}", edge.source));
      }
  }
  for (const auto& shared : cut.split.shared) {
    std::vector<std::string> users;
    for (const auto& [stage, name] : shared.nameIn) users.push_back(fmt::format("stage {} as {}", stage, name));
    fmt::print("{} ({} bytes) is used in {}; {}\n", fmt::join(shared.names, " = "), shared.bytes,
               fmt::join(users, ", "),
               shared.use == MultiUse::transmit ? "the first sends it"
                                                : "each has a copy: sum their gradients before the optimizer's step");
  }
  for (const auto& note : cut.notes) fmt::print("# {}\n", note);
}

int runPipelineSplit(const SplitArguments& arguments, const Progress& progress) {
  auto cut = arguments.cut.open(!arguments.out.empty(), progress);
  if (arguments.format == "json") std::puts(dumpJson(pipelineJson(cut.model, cut.split, cut.notes)).c_str());
  else print(cut);
  const bool failed = reportProblems(cut.model.problems);
  if (!arguments.out.empty())
    writeStages(std::move(cut.model), std::move(cut.whole), cut.split, cut.notes, arguments.out, progress);
  return failed ? badInputOrUse : allWell;
}

Run setUpPipelineSplit(Parser parser) {
  auto arguments = std::make_shared<SplitArguments>();
  arguments->cut.addTo(parser);
  addFormat(parser, arguments->format);
  parser.add("-o,--output", arguments->out,
             "folder for the stages, each a session file with its weights, and pipeline.json");
  parser.add("--out", arguments->out).hidden();
  return [arguments](const Progress& progress) { return runPipelineSplit(*arguments, progress); };
}

const Registration registrationPipelineSplit("split", "cut a model into stages and show what crosses each border",
                                             setUpPipelineSplit, "pipeline");

}  // namespace
}  // namespace retrograd::cli
