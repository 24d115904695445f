#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "app/cli/look/memory_report.h"
#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/terminal.h"
#include "core/base/number_text.h"
#include "core/questions/memory_join/job_step.h"
#include "core/torch/reading/formats.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd::cli {
namespace {

std::size_t deviceOf(const MemorySnapshot& snapshot, const MemoryArguments& arguments) {
  if (!arguments.device) return firstDevice(snapshot);
  if (*arguments.device < snapshot.events.size()) return *arguments.device;
  badUse(fmt::format("has {} device(s), from 0 on; device {} is not among them", snapshot.events.size(),
                     *arguments.device),
         arguments.path);
}

MemoryMoment momentOf(const MemorySnapshot& snapshot, std::size_t device, const MemoryArguments& arguments) {
  if (arguments.at == "peak") return {};
  if (arguments.at == "oom") {
    if (const auto event = outOfMemoryEvent(snapshot, device)) return {event};
    badUse("its history has no request that failed (an event \"oom\"); leave --at out", arguments.path);
  }
  const auto event = positionIn(arguments.at);
  if (!event) badUse("--at: '" + arguments.at + "' is neither peak, oom nor an event's number");
  if (const auto count = snapshot.events[device].size(); *event >= count)
    badUse(fmt::format("has {} events, from 0 on; {} is not among them", count, *event), arguments.path);
  return {event};
}

MemoryGrouping groupingOf(const std::string& by) {
  return by == "line" ? MemoryGrouping::line : by == "module" ? MemoryGrouping::module : MemoryGrouping::category;
}

/// What a step of the program allocates: as a job's own graphs say, or a model that is derived as for the GPU whose
/// history it is.
TracedStep traceOf(const std::string& path, const Progress& progress) {
  if (isOf(Format::job, path)) return jobStep(path, lookupSymbol, progress);
  InputOptions input;
  input.device = Device{Device::Type::cuda, 0};
  const auto analysis = open(path, input, progress);
  if (analysis->derived()) return tracedStep(*analysis);
  reportProblems(analysis->problems);
  badInput("has no forward and backward to join a snapshot with", path);
}

void join(OpenedMemory& opened, const TracedStep& trace, const MemoryMoment& moment, const Progress& progress) {
  const auto history = wholeHistory(*opened.snapshot, opened.device, *opened.places, moment, progress);
  opened.join = joinMemory(history, *opened.places, trace);
  opened.joined = joinedMoment(*opened.join, opened.held.event);
  for (auto& finding : joinedFindings(*opened.join, *opened.places, opened.joined, opened.held.event))
    opened.findings.push_back(std::move(finding));
  worstFirst(opened.findings);
}

/// "recompute:blocks" as a change.
MemoryChange changeIn(const std::string& text) {
  const auto colon = text.find(':');
  for (const auto kind : {MemoryChange::Kind::recompute, MemoryChange::Kind::bfloat16, MemoryChange::Kind::offload})
    if (text.substr(0, colon) == name(kind) && colon != std::string::npos) return {kind, text.substr(colon + 1)};
  badUse("--what-if: '" + text + "' is not recompute:MODULE, bfloat16:MODULE or offload:MODULE");
}

void tryChanges(OpenedMemory& opened, const MemoryArguments& arguments) {
  if (!arguments.model && arguments.whatIf.empty() && arguments.choices == 0) return;
  if (!opened.join) {
    const auto requests = allocatorRequests(*opened.snapshot, opened.device);
    opened.model = modelledMemory(*opened.snapshot, opened.device, requests);
    return;
  }
  const MemoryExperiment experiment(*opened.snapshot, opened.device, *opened.join);
  opened.model = experiment.asRecorded();
  for (const auto& text : arguments.whatIf) {
    const auto result = experiment.run(changeIn(text));
    if (result.tensors == 0)
      badUse("--what-if: no saved tensor of module '" + result.change.module +
             "' is known; modules that have some: " + fmt::format("{}", fmt::join(experiment.candidates(), ", ")));
    opened.whatIfs.push_back(result);
  }
  for (auto& choice : experiment.best(arguments.choices)) opened.whatIfs.push_back(std::move(choice));
}

OpenedMemory openMemory(const MemoryArguments& arguments, const TracedStep* trace, const Progress& progress) {
  requireFile(arguments.path);
  OpenedMemory opened;
  opened.snapshot = openMemorySnapshot(arguments.path, progress);
  opened.device = deviceOf(*opened.snapshot, arguments);
  opened.places = std::make_unique<const MemoryPlaces>(*opened.snapshot);
  const auto moment = momentOf(*opened.snapshot, opened.device, arguments);
  opened.held = heldMemory(*opened.snapshot, opened.device, *opened.places, moment, progress);
  opened.categories = memoryGroups(opened.held, *opened.places, MemoryGrouping::category);
  opened.groups = memoryGroups(opened.held, *opened.places, groupingOf(arguments.by));
  opened.findings = memoryFindings(*opened.snapshot, opened.device, *opened.places, opened.held);
  if (trace) join(opened, *trace, moment, progress);
  if (arguments.other.empty()) tryChanges(opened, arguments);
  return opened;
}

int runMemory(const MemoryArguments& arguments, const Progress& progress) {
  if ((!arguments.whatIf.empty() || arguments.choices > 0) && (arguments.trace.empty() || !arguments.other.empty()))
    badUse("--what-if and --choices need --trace, and one snapshot");
  for (const auto& text : arguments.whatIf) changeIn(text);
  std::optional<TracedStep> trace;
  if (!arguments.trace.empty()) trace = traceOf(arguments.trace, progress);
  const auto opened = openMemory(arguments, trace ? &*trace : nullptr, progress);
  if (!arguments.other.empty()) {
    auto second = arguments;
    second.path = arguments.other;
    printMemoryPair(arguments, opened, openMemory(second, trace ? &*trace : nullptr, progress));
    return allWell;
  }
  if (arguments.format == "json") printMemoryJson(arguments, opened);
  else printMemoryText(arguments, opened);
  return allWell;
}

Run setUpMemory(Parser parser) {
  auto arguments = std::make_shared<MemoryArguments>();
  parser
      .add("snapshot", arguments->path, "what torch.cuda.memory._dump_snapshot wrote; .gz and .xz are read as they are")
      .required();
  parser.add("other", arguments->other, "a second snapshot: shows what it holds more and less");
  parser
      .add("--at", arguments->at,
           "the moment: the peak, the request that failed (oom), or after an event of this number")
      .showDefault()
      .typeName("peak|oom|EVENT");
  parser.add(
      "--trace", arguments->trace,
      "a model, a folder or a job's log of the same program: says which op made each block and which reads it last");
  parser.add("--what-if", arguments->whatIf,
             "with --trace: the peak if saved tensors of a module were recomputed, halved or moved; recompute:MODULE, "
             "bfloat16:MODULE or offload:MODULE; repeatable");
  parser.add("--choices", arguments->choices, "with --trace: the N of these changes that free most");
  parser.flag("--model", arguments->model,
              "replay the events through a model of PyTorch's allocator, and show its peak");
  parser.add("--by", arguments->by, "what the bytes of the moment are listed by")
      .oneOf({"line", "module", "category"})
      .showDefault();
  parser.add("--device", arguments->device, "the device's number; without it the first that has a history");
  parser.add("--rows", arguments->rows, "rows of the list").showDefault();
  addFormat(parser, arguments->format);
  return [arguments](const Progress& progress) { return runMemory(*arguments, progress); };
}

const Registration registrationMemory(
    "memory", "show what held a GPU's memory at its peak, from a snapshot of PyTorch's allocator", setUpMemory);

}  // namespace
}  // namespace retrograd::cli
