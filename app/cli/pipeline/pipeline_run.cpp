#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/report.h"
#include "app/cli/pipeline/pipeline_batch.h"
#include "app/cli/pipeline/pipeline_cuts.h"
#include "core/cut/stage_facts.h"
#include "core/formats/files/atomic_file.h"
#include "core/ranks/executor.h"
#include "core/ranks/traffic.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_lowering.h"
#include "core/torch/checking/rank_check.h"
#include "core/torch/execution/device.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/write_reference.h"
#include "core/torch/stages/rank_stages.h"
#include "core/trace/print/json.h"
#include "core/trace/relocate.h"

namespace retrograd::cli {
namespace {

struct RunArguments {
  CutOptions cut;
  BatchOptions batch;
  std::string schedule = "1F1B", format = "text", save, transfers = "auto";
  std::int32_t microbatches = 1;
  bool check = false;
};

/// What the ranks run, the same on each.
struct Step {
  CutModel cut;
  std::optional<OpenBatch> batch;
  std::vector<Microbatch> microbatches;
  Schedule schedule;

  const Pipeline& pipeline() const { return *microbatches.front().pipeline; }
  double scale(const BatchOptions& options) const {
    return options.scaleGradients ? 1.0 / static_cast<double>(microbatches.size()) : 1.0;
  }
};

/// A CSV file says how many microbatches it has.
std::optional<Schedule> scheduleFile(const RunArguments& arguments) {
  if (findScheduleKind(arguments.schedule)) return std::nullopt;
  return readScheduleFile(arguments.schedule);
}

/// The schedule over the ranks that there are, for the stages that there are and what crosses between them.
Schedule scheduleFor(const RunArguments& arguments, std::optional<Schedule> given, const Step& step,
                     std::int32_t ranks) {
  const auto stages = static_cast<std::int32_t>(step.pipeline().stages.size());
  const auto microbatches = static_cast<std::int32_t>(step.microbatches.size());
  if (!given && stages % ranks != 0)
    badUse(fmt::format("{} stages cannot be shared evenly by {} ranks; cut it with --stages", stages, ranks),
           arguments.cut.file);
  auto schedule =
      given ? *given : makeSchedule(*findScheduleKind(arguments.schedule), ranks, microbatches, stages / ranks);
  if (schedule.stages != stages)
    badUse(fmt::format("the schedule has {} stages, the model is cut into {}", schedule.stages, stages),
           arguments.schedule);
  if (schedule.microbatches != microbatches)
    badUse(fmt::format("the schedule has {} microbatches, the batch makes {}", schedule.microbatches, microbatches),
           arguments.schedule);
  schedule.edges = stageEdges(*step.pipeline().whole, step.pipeline().split);
  return lowerSchedule(schedule);
}

/// Cuts as rank 0 does: loads that each rank measured for itself would be cut in different places.
CutModel openTogether(const RunArguments& arguments, const Reference& given, Transport& transport,
                      const Progress& progress) {
  auto options = arguments.cut;
  if (transport.rank() > 0 && options.request.stages > 1 && options.request.balance == Balance::time)
    options.request.balance = Balance::estimate;
  auto cut = options.open(true, given, progress);
  cut.cuts = fromFirstRank(transport, cut.cuts);
  cut.split = splitPipeline(*cut.model.document, cut.model.computation, cut.cuts, options.request.options);
  return cut;
}

RequestForInputs requestForBatch(const RunArguments& arguments, const OpenBatch& batch) {
  return [&arguments, &batch](const ModelFile& model, const TensorMap& inputs, const TensorMap& cotangents) {
    return arguments.cut.input.forFile(model, batch.with(inputs, cotangents));
  };
}

Step prepare(const RunArguments& arguments, Transport& transport, const Progress& progress) {
  Step step;
  auto given = scheduleFile(arguments);
  const auto microbatches = given ? given->microbatches : arguments.microbatches;
  if (arguments.batch.given()) {
    step.batch = openBatch(arguments.batch, microbatches);
    const auto first = step.batch->with(step.batch->inputs.front(), step.batch->cotangents.front());
    try {
      step.cut = openTogether(arguments, first, transport, progress);
    } catch (const Error& error) {
      throw error.at(fmt::format("microbatch 0 of {}", step.batch->inputs.size()));
    }
    step.microbatches = deriveMicrobatches(step.cut, arguments.cut.request.loss, step.batch->inputs,
                                           step.batch->cotangents, requestForBatch(arguments, *step.batch), progress);
  } else {
    const auto& inputs = arguments.cut.input.inputs;
    step.cut = openTogether(arguments, inputs.empty() ? Reference() : readReference(inputs), transport, progress);
    step.microbatches = rotatedMicrobatches(
        std::make_shared<const Pipeline>(derivePipeline(step.cut.model, step.cut.whole, step.cut.split, progress)),
        microbatches);
  }
  if (const auto& why = step.pipeline().whole->dataDependent; !why.empty())
    badUse("its traces hold for one set of inputs only, so microbatches cannot differ: " + why.front(),
           arguments.cut.file);
  step.schedule = scheduleFor(arguments, std::move(given), step, transport.size());
  return step;
}

std::set<std::int32_t> stagesOf(const Schedule& schedule, std::int32_t rank) {
  std::set<std::int32_t> stages;
  for (std::int32_t s = 0; s < schedule.stages; ++s)
    if (schedule.rankOfStage.at(s) == rank) stages.insert(s);
  return stages;
}

Report check(const RunArguments& arguments, const Step& step, const RankResults& results, const Progress& progress) {
  WholeBatch whole;
  if (step.batch)
    whole = deriveBatch(step.cut, step.microbatches, step.batch->whole.inputs, arguments.batch.merges, results.scale,
                        requestForBatch(arguments, *step.batch), progress);
  return checkRank(results, step.microbatches, whole, arguments.batch.merges, progress);
}

void save(const RunArguments& arguments, int rank, const RankResults& results, std::uint64_t seed) {
  makeFolder(arguments.save);
  auto tensors = mergedOutputs(results, arguments.batch.merges);
  for (const auto& [name, tensor] : results.gradients) tensors.emplace("grad." + name, tensor);
  for (const auto& [name, tensor] : results.buffers) tensors.emplace("mut." + name, tensor);
  saveReference(tensors, seed,
                (std::filesystem::path(arguments.save) / fmt::format("rank_{}.safetensors", rank)).string());
}

/// Losses and other outputs of one element, by microbatch.
std::map<std::string, std::vector<double>> numbersOf(const RankResults& results) {
  std::map<std::string, std::vector<double>> numbers;
  for (const auto& [output, parts] : results.outputs)
    for (const auto& [m, tensor] : parts)
      if (tensor.meta.sizes.empty() && isFloating(tensor.meta.dtype))
        numbers[output].push_back(asDoubles(tensor).front());
  return numbers;
}

Device deviceOfStage(const Pipeline& pipeline, std::int32_t stage) {
  return withIndex(pipeline.split.stages[stage].device.value_or(pipeline.whole->device));
}

/// Where stages run, if it is one device.
std::optional<Device> deviceOfStages(const Pipeline& pipeline, const std::set<std::int32_t>& stages) {
  std::set<Device> found;
  for (auto s : stages) found.insert(deviceOfStage(pipeline, s));
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

bool usesGpu(const Pipeline& pipeline) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s)
    if (deviceOfStage(pipeline, static_cast<std::int32_t>(s)).type == Device::Type::cuda) return true;
  return false;
}

/// The link between the ranks' devices, where there shall be one and can be one.
std::unique_ptr<DeviceLink> linkFor(const RunArguments& arguments, const Step& step,
                                    const std::optional<Device>& device, Transport& transport) {
  const bool isAutomatic = arguments.transfers == "auto";
  if (arguments.transfers == "host" || (isAutomatic && (transport.size() == 1 || !usesGpu(step.pipeline()))))
    return nullptr;
  auto [link, refusal] = transport.linkDevices(device, rankPairs(step.schedule));
  if (!refusal.empty() && !isAutomatic) badUse("tensors cannot go directly: " + refusal, "--transfers");
  if (!refusal.empty() && transport.rank() == 0)
    fmt::print(stderr, "note: tensors go through the memory of the host: {}\n", refusal);
  return std::move(link);
}

void report(const RunArguments& arguments, int rank, const std::vector<ExecutedAction>& actions,
            const RankResults& results, const std::optional<Report>& checked, const std::string& carrier) {
  const double seconds = actions.empty() ? 0 : actions.back().end;
  const auto numbers = numbersOf(results);
  if (arguments.format == "json") {
    nlohmann::ordered_json json{{"rank", rank},       {"actions", nlohmann::ordered_json::array()},
                                {"seconds", seconds}, {"gradients", results.gradients.size()},
                                {"outputs", numbers}, {"transfers", carrier}};
    for (const auto& one : actions)
      json["actions"].push_back({{"action", text(one.action)}, {"start", one.start}, {"end", one.end}});
    if (checked) json["check"] = toJson(*checked, decide(*checked));
    std::puts(dumpJson(json).c_str());
    return;
  }
  fmt::print("{} actions in {:.1f} ms, gradients of {} parameters", actions.size(), seconds * 1e3,
             results.gradients.size());
  if (carrier != "host") fmt::print(", tensors over {}", carrier);
  for (const auto& [output, values] : numbers) fmt::print(", output {} is {:.6g}", output, fmt::join(values, " "));
  fmt::print("\n");
  if (checked) printReport(*checked, decide(*checked));
}

int runOn(const RunArguments& arguments, Transport& transport, const Progress& progress) {
  const auto step = prepare(arguments, transport, progress);
  if (step.batch && !step.batch->note.empty() && transport.rank() == 0)
    fmt::print(stderr, "note: {}\n", step.batch->note);
  const auto own = stagesOf(step.schedule, transport.rank());
  for (auto s : own)
    if (const auto device = step.pipeline().split.stages[s].device) requireDevice(*device);
  const auto device = deviceOfStages(step.pipeline(), own);
  const auto link = linkFor(arguments, step, device, transport);
  RankStages stages(step.microbatches, arguments.check || !arguments.save.empty(), link ? device : std::nullopt);
  const auto actions = runRank(step.schedule, transport, stages, progress, link.get());
  sumOverRanks(transport, stages.parameterGradients(), gradientsToSum(step.pipeline()), link.get());
  for (auto& [name, tensor] : stages.parameterGradients()) tensor = hostTensor(tensor);
  RankResults results{std::move(stages.parameterGradients()), step.scale(arguments.batch), stages.outputs(),
                      stages.buffers(), gradientsOfStages(step.pipeline(), own)};
  if (results.scale != 1)
    for (auto& [name, tensor] : results.gradients) tensor = scaledTensor(tensor, results.scale);
  std::optional<Report> checked;
  if (arguments.check) checked = check(arguments, step, results, progress);
  if (checked) checked->subject = fmt::format("rank {}", transport.rank());
  if (!arguments.save.empty()) save(arguments, transport.rank(), results, step.pipeline().whole->request.seed);
  report(arguments, transport.rank(), actions, results, checked, link ? link->carrier() : "host");
  transport.barrier();
  return checked ? exitCode(decide(*checked).verdict) : allWell;
}

/// `cuda` alone is each rank's own GPU; a device with a number, or one for each stage, is that.
int runPipelineRun(RunArguments arguments, bool ownDevice, const Progress& progress) {
  requireFile(arguments.cut.file);
  const auto meeting = rendezvousFromEnvironment();
  if (ownDevice) arguments.cut.input.device = deviceOfProcess(meeting.localRank);
  requireToRun(arguments.cut.input.device);
  const auto transport = connectRanks(meeting);
  try {
    return runOn(arguments, *transport, progress);
  } catch (const std::exception& error) {
    transport->fail(messageOf(error));  // whoever waits for this rank hears why it does not come
    throw;
  }
}

Run setUpPipelineRun(Parser parser) {
  auto arguments = std::make_shared<RunArguments>();
  arguments->cut.addTo(parser);
  parser.add("--schedule", arguments->schedule, "its name (see pipeline schedule) or a CSV file").showDefault();
  parser
      .add("--microbatches", arguments->microbatches,
           "microbatches of a step; without --batch each has the shapes that the file was exported with")
      .aboveZero()
      .showDefault();
  arguments->batch.addTo(parser);
  parser.flag("--check", arguments->check, "compare gradients and outputs with those of the model in one piece");
  parser.add(
      "-o,--output", arguments->save,
      "folder for rank_N.safetensors: the gradients of a rank, its merged outputs and the buffers that it wrote");
  parser.add("--save", arguments->save).hidden();
  parser
      .add("--transfers", arguments->transfers,
           "how tensors go from rank to rank: direct (NCCL between GPUs; not yet run on one), host (through its "
           "memory), or auto (direct where possible)")
      .oneOf({"auto", "direct", "host"})
      .showDefault();
  addFormat(parser, arguments->format);
  const auto device = parser.option("--device");
  return [arguments, device](const Progress& progress) {
    return runPipelineRun(*arguments, device.given() && device.values().back() == "cuda", progress);
  };
}

const Registration registrationPipelineRun(
    "run", "one rank's part of a training step: start it once a rank, with torchrun's variables or by pipeline launch",
    setUpPipelineRun, "pipeline");

}  // namespace
}  // namespace retrograd::cli
