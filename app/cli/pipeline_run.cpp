#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/pipeline.h"
#include "app/cli/pipeline_cuts.h"
#include "core/checking/compare.h"
#include "core/checking/tolerance.h"
#include "core/execution/distributed/executor.h"
#include "core/pipeline/rank_stages.h"
#include "core/pipeline/schedule_kinds.h"
#include "core/pipeline/schedule_lowering.h"
#include "core/trace/json.h"

namespace retrograd::cli {
namespace {

struct RunArguments {
  CutOptions cut;
  std::string schedule = "1F1B", format = "text";
  std::int32_t microbatches = 1;
  bool check = false;
};

/// The schedule over the ranks that there are, for the stages that there are and what crosses between them.
Schedule scheduleFor(const RunArguments& arguments, const Pipeline& pipeline, std::int32_t ranks) {
  const auto stages = static_cast<std::int32_t>(pipeline.stages.size());
  Schedule schedule;
  if (const auto* kind = findScheduleKind(arguments.schedule)) {
    if (stages % ranks != 0)
      throw Error(ErrorCode::badUse, fmt::format("{} stages cannot be shared evenly by {} ranks; cut it with --stages", stages, ranks), arguments.cut.file);
    schedule = makeSchedule(*kind, ranks, arguments.microbatches, stages / ranks);
  } else {
    schedule = readScheduleFile(arguments.schedule);
  }
  if (schedule.stages != stages)
    throw Error(ErrorCode::badUse, fmt::format("the schedule has {} stages, the model is cut into {}", schedule.stages, stages), arguments.schedule);
  schedule.edges = stageEdges(pipeline.split);
  return lowerSchedule(schedule);
}

struct Verdict {
  std::size_t compared = 0;
  double error = 0, tolerance = 0;
  std::string worst, failure;
  bool good() const { return failure.empty() && error <= tolerance; }
};

/// The gradients that this rank has beside those of the model in one piece.
Verdict compareWithUnsplit(const Pipeline& pipeline, const TensorMap& gradients, std::int32_t microbatches, const Progress& progress) {
  if (drawsAnything(*pipeline.whole))
    throw Error(ErrorCode::badUse, "the model draws random numbers, and each stage draws its own: there is no unsplit run to compare with; leave --check out or export it in eval mode");
  const auto expected = unsplitGradients(*pipeline.whole, microbatches, progress);
  Verdict verdict;
  Comparison comparison;
  for (const auto& [name, tensor] : gradients) {
    const auto it = expected.find(name);
    if (it == expected.end()) {
      if (!isZero(tensor)) comparison.fail(name, "the model in one piece gives none");
      continue;
    }
    comparison.add(name, tensor, it->second);
    ++verdict.compared;
  }
  verdict.error = comparison.error();
  verdict.tolerance = tolerancesFor(*pipeline.whole, {}, {}).gradients;
  verdict.worst = comparison.worst();
  verdict.failure = comparison.failure();
  return verdict;
}

void report(const RunArguments& arguments, int rank, const std::vector<ExecutedAction>& actions, const TensorMap& gradients, const std::optional<Verdict>& verdict) {
  const double seconds = actions.empty() ? 0 : actions.back().end;
  if (arguments.format == "json") {
    nlohmann::ordered_json json{{"rank", rank}, {"actions", nlohmann::json::array()}, {"seconds", seconds}, {"gradients", gradients.size()}};
    for (const auto& one : actions) json["actions"].push_back({{"action", text(one.action)}, {"start", one.start}, {"end", one.end}});
    if (verdict) json["check"] = {{"pass", verdict->good()}, {"compared", verdict->compared}, {"error", verdict->error}, {"tolerance", verdict->tolerance}, {"worst", verdict->worst}};
    std::puts(dumpJson(json).c_str());
    return;
  }
  fmt::print("{} actions in {:.1f} ms, gradients of {} parameters", actions.size(), seconds * 1e3, gradients.size());
  if (verdict && verdict->good()) fmt::print("; {} compared with the model in one piece: equal to {:.1e} (tolerance {:.1e})", verdict->compared, verdict->error, verdict->tolerance);
  fmt::print("\n");
  if (verdict && !verdict->good())
    fmt::print(stderr, "error: rank {}: {}\n", rank, verdict->failure.empty() ? fmt::format("{} is off by {:.1e}, beyond {:.1e}", verdict->worst, verdict->error, verdict->tolerance) : verdict->failure);
}

int run(const RunArguments& arguments, const Progress& progress) {
  const auto meeting = rendezvousFromEnvironment();
  auto cut = arguments.cut.open(true, progress);
  const auto pipeline = derivePipeline(std::move(cut.model), std::move(cut.whole), std::move(cut.split), progress);
  if (!pipeline.whole->dataDependent.empty())
    throw Error(ErrorCode::badUse, "its traces hold for one set of inputs only, so microbatches cannot differ: " + pipeline.whole->dataDependent.front(), arguments.cut.file);
  const auto schedule = scheduleFor(arguments, pipeline, meeting.size);
  const auto transport = connectRanks(meeting);
  RankStages stages(pipeline);
  const auto actions = runRank(schedule, *transport, stages, progress);
  sumOverRanks(*transport, stages.parameterGradients(), gradientsToSum(pipeline));
  std::optional<Verdict> verdict;
  if (arguments.check) verdict = compareWithUnsplit(pipeline, stages.parameterGradients(), schedule.microbatches, progress);
  report(arguments, meeting.rank, actions, stages.parameterGradients(), verdict);
  transport->barrier();
  return verdict && !verdict->good() ? checkFailed : allWell;
}

Run setup(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  arguments->cut.addTo(app);
  app.add_option("--schedule", arguments->schedule, "its name (see pipeline schedule) or a CSV file")->capture_default_str();
  app.add_option("--microbatches", arguments->microbatches, "microbatches of a step, each of the shapes that the file was exported with")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--check", arguments->check, "compare the gradients with those of the model in one piece");
  addFormat(app, arguments->format);
  return [arguments](const Progress& progress) { return run(*arguments, progress); };
}

const PipelineRegistration registration("run", "one rank's part of a training step: start it once a rank, with torchrun's variables or by pipeline launch", setup);

}  // namespace
}  // namespace retrograd::cli
