#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/output.h"
#include "app/cli/pipeline/pipeline_cuts.h"
#include "core/base/near_names.h"
#include "core/cut/stage_facts.h"
#include "core/schedule/schedule_check.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_lowering.h"
#include "core/schedule/schedule_report.h"
#include "core/torch/stages/rank_stages.h"
#include "core/torch/stages/stage_costs.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct ScheduleArguments {
  std::string schedule, format = "text", costs, output;
  std::int32_t ranks = 0, microbatches = 0, stagesPerRank = 0;
  bool lower = false, merge = false, spaced = false, measure = false;
  double link = 0;   // GB/s between ranks; 0: what crosses is there at once
  CutOptions model;  // its file is empty where none is given
};

std::vector<std::string> known() {
  std::vector<std::string> names;
  for (const auto& kind : scheduleKinds()) names.emplace_back(kind.name);
  return names;
}

/// The ranks that share a model's stages evenly.
std::int32_t ranksFor(const ScheduleKind& kind, const ScheduleArguments& arguments, std::int32_t stages) {
  const auto each = arguments.stagesPerRank   ? arguments.stagesPerRank
                    : kind.fixedStagesPerRank ? kind.fixedStagesPerRank
                    : arguments.ranks         ? stages / arguments.ranks
                                              : 1;
  const auto ranks = std::max(arguments.ranks ? arguments.ranks : stages / std::max(each, 1), 1);
  if (ranks * std::max(each, 1) != stages)
    badUse(fmt::format("{} over {} has {} stages, the model is cut into {}: cut it with --stages {}", kind.name,
                       ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks), ranks * std::max(each, 1), stages,
                       ranks * std::max(each, 1)),
           arguments.model.file);
  return ranks;
}

/// The schedule of a model: as large as it has stages, with what crosses between them.
Schedule openFor(const ScheduleArguments& arguments, const Pipeline& pipeline) {
  const auto stages = static_cast<std::int32_t>(pipeline.stages.size());
  Schedule schedule;
  if (const auto* kind = findScheduleKind(arguments.schedule)) {
    if (!arguments.microbatches) badUse("--microbatches says how large the schedule is", arguments.schedule);
    const auto ranks = ranksFor(*kind, arguments, stages);
    schedule = makeSchedule(*kind, ranks, arguments.microbatches, stages / ranks);
  } else {
    schedule = readScheduleFile(arguments.schedule);
    if (schedule.stages != stages)
      badUse(fmt::format("the schedule has {} stages, the model is cut into {}", schedule.stages, stages),
             arguments.schedule);
  }
  schedule.edges = stageEdges(*pipeline.whole, pipeline.split);
  return schedule;
}

Schedule open(const ScheduleArguments& arguments) {
  if (const auto* kind = findScheduleKind(arguments.schedule)) {
    if (!arguments.ranks || !arguments.microbatches)
      badUse("--ranks and --microbatches say how large the schedule is", arguments.schedule);
    return makeSchedule(*kind, arguments.ranks, arguments.microbatches, arguments.stagesPerRank);
  }
  if (!std::filesystem::is_regular_file(arguments.schedule))
    badUse(fmt::format("neither a schedule nor a CSV file{}; schedules are {}", didYouMean(arguments.schedule, known()),
                       fmt::join(known(), ", ")),
           arguments.schedule);
  if (arguments.ranks || arguments.microbatches || arguments.stagesPerRank)
    badUse("a file says itself how many ranks, stages and microbatches it has", arguments.schedule);
  return readScheduleFile(arguments.schedule);
}

ScheduleCosts readCosts(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  if (!file) badUse("cannot be read", path);
  constexpr std::uintmax_t most = 8 << 20;
  std::error_code ignored;
  if (const auto size = std::filesystem::file_size(path, ignored); !ignored && size > most)
    badInput("too large for costs of stages (8 MiB at most)", path);
  return readScheduleCosts(std::string{std::istreambuf_iterator<char>(file), {}}, path);
}

/// A model's stages, and what crosses between them.
struct DerivedModel {
  Pipeline pipeline;
  std::vector<StageTraffic> traffic;
};

DerivedModel derive(const ScheduleArguments& arguments, const Progress& progress) {
  if (arguments.measure) requireToRun(arguments.model.input.device);
  if (arguments.link > 0 && !arguments.measure)
    badUse("--link needs times in seconds: add --measure", arguments.model.file);
  auto cut = arguments.model.open(true, progress);
  for (const auto& note : cut.notes) fmt::print(stderr, "note: {}\n", note);
  auto traffic = stageTraffic(*cut.whole, cut.model, cut.split);
  return {derivePipeline(std::move(cut.model), std::move(cut.whole), std::move(cut.split), progress),
          std::move(traffic)};
}

ScheduleCosts costsOf(const ScheduleArguments& arguments, const DerivedModel& model, const Progress& progress) {
  if (!arguments.measure) return estimatedStageCosts(model.pipeline);
  auto costs = measuredStageCosts(model.pipeline, progress);
  if (arguments.link > 0) costs.edges = transferTimes(model.traffic, arguments.link);
  return costs;
}

/// All problems of a schedule that cannot run, to standard error.
bool reportIfInvalid(const Schedule& schedule) {
  const auto check = checkSchedule(schedule);
  constexpr std::size_t most = 20;
  for (std::size_t i = 0; i < std::min(check.problems.size(), most); ++i)
    fmt::print(stderr, "error: {}{}{}: {}\n", schedule.name, check.problems[i].place.empty() ? "" : ", ",
               check.problems[i].place, check.problems[i].message);
  if (check.problems.size() > most) fmt::print(stderr, "... and {} more\n", check.problems.size() - most);
  return !check.ok();
}

std::string render(const ScheduleArguments& arguments, const Schedule& schedule, const ScheduleCosts& costs) {
  if (arguments.format == "csv")
    return arguments.spaced ? writeSpacedScheduleCsv(schedule) : writeScheduleCsv(schedule);
  const auto run = simulate(schedule, costs);
  if (arguments.format == "json") return dumpJson(scheduleJson(schedule, run, costs), 1) + "\n";
  if (arguments.format == "svg") return scheduleSvg(schedule, run, costs);
  return scheduleText(schedule, run, costs);
}

int runPipelineSchedule(const ScheduleArguments& arguments, const Progress& progress) {
  std::optional<DerivedModel> model;
  if (!arguments.model.file.empty()) model = derive(arguments, progress);
  else if (arguments.measure) badUse("--measure measures a model: name it by --model", arguments.schedule);
  auto schedule = model ? openFor(arguments, model->pipeline) : open(arguments);
  if (reportIfInvalid(schedule)) return checkFailed;
  if (arguments.merge) schedule = mergeBackward(std::move(schedule));
  if (arguments.lower) schedule = lowerSchedule(schedule);
  const auto costs = model ? costsOf(arguments, *model, progress) : readCosts(arguments.costs);
  const auto text = render(arguments, schedule, costs);
  writeText(arguments.output.empty() ? "-" : arguments.output, text);
  return allWell;
}

Run setUpPipelineSchedule(Parser parser) {
  auto arguments = std::make_shared<ScheduleArguments>();
  parser
      .add("schedule", arguments->schedule,
           "its name (" + fmt::format("{}", fmt::join(known(), ", ")) +
               ") or a CSV file in PyTorch's form, which is checked")
      .required();
  parser.add("--ranks", arguments->ranks, "ranks that share the stages").aboveZero();
  parser.add("--microbatches", arguments->microbatches, "microbatches of a batch").aboveZero();
  parser
      .add("--stages-per-rank", arguments->stagesPerRank,
           "stages of each rank (default: the schedule's own number, or 2)")
      .aboveZero();
  const auto costs =
      parser.add("--costs", arguments->costs,
                 "JSON file with times and activation bytes of the stages (default: F = I = W = 1, B = 2)");
  const auto model =
      parser.add("--model", arguments->model.file,
                 "a model: times and activation bytes are those of its stages; cut as in pipeline split");
  model.excludes(costs);
  parser.flag("--measure", arguments->measure,
              "with --model: measure the stages by running them (default: estimate from the ops alone)");
  const auto before = parser.options().size();
  parser.add("--link", arguments->link, "speed between ranks in GB per second (default: transfers take no time)")
      .aboveZero();
  arguments->model.addOptionsTo(parser);
  const auto options = parser.options();
  for (auto i = before; i < options.size(); ++i) options[i].needs(model);
  parser.flag("--merge", arguments->merge, "join each I and the W right after it into a B");
  parser.flag("--lower", arguments->lower, "with the sends and receives that the schedule implies");
  parser.flag("--spaced", arguments->spaced, "CSV with an empty cell for each unit of time that a rank waits");
  parser.add("--format", arguments->format, "text, json, csv or svg")
      .oneOf({"text", "json", "csv", "svg"})
      .showDefault();
  addOutput(parser, "-o,--output", arguments->output, "file to write (default, or -: standard output)");
  return [arguments](const Progress& progress) { return runPipelineSchedule(*arguments, progress); };
}

const Registration registrationPipelineSchedule("schedule", "make, check, simulate and draw a pipeline schedule",
                                                setUpPipelineSchedule, "pipeline");

}  // namespace
}  // namespace retrograd::cli
