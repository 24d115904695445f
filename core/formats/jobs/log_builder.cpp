#include "core/formats/jobs/log_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace retrograd::jobs {
namespace {

std::optional<std::int64_t> integerOf(const Json& record, std::string_view key) {
  const auto* found = record.find(key);
  if (found == nullptr || found->kind() != Json::Kind::integer) return std::nullopt;
  return found->integer();
}

std::optional<double> secondsOf(const Json& metrics, std::string_view key, double unit = 1) {
  const auto* found = metrics.find(key);
  if (found == nullptr || (found->kind() != Json::Kind::integer && found->kind() != Json::Kind::real))
    return std::nullopt;
  return found->number() * unit;
}

std::string firstLine(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

constexpr std::array<std::string_view, 3> described{"describe_tensor", "describe_source", "create_symbol"};

}  // namespace

Process& LogBuilder::process(std::size_t file, std::string_view pid) {
  const auto [known, isNew] = processes_.try_emplace({file, std::string(pid)}, log_.processes.size());
  if (isNew) {
    log_.processes.emplace_back();
    log_.processes.back().file = file;
    log_.processes.back().pid = pid;
  }
  return log_.processes[known->second];
}

Compile& LogBuilder::compile(Process& process, const CompileId& id, bool starts) {
  const auto number = static_cast<std::size_t>(&process - log_.processes.data());
  const auto [known, isNew] = compiles_.try_emplace({number, id}, process.compiles.size());
  if (isNew) {
    process.compiles.emplace_back();
    process.compiles.back().id = id;
  } else if (const auto& last = process.compiles[known->second];
             starts && std::any_of(last.attempts.begin(), last.attempts.end(),
                                   [](const auto& a) { return a.seconds || !a.graphs.empty(); })) {
    const int occurrence = last.occurrence + 1;
    known->second = process.compiles.size();
    process.compiles.emplace_back();
    process.compiles.back().id = id;
    process.compiles.back().occurrence = occurrence;
  }
  return process.compiles[known->second];
}

Attempt& LogBuilder::attempt(Process& process, const CompileId& id, std::int64_t number) {
  auto& attempts = compile(process, id, false).attempts;
  const auto found = std::find_if(attempts.begin(), attempts.end(), [&](const auto& a) { return a.number == number; });
  if (found != attempts.end()) return *found;
  attempts.emplace_back();
  attempts.back().number = number;
  attempts.back().file = process.file;
  return attempts.back();
}

void LogBuilder::addGraph(Process& process, const CompileId& id, std::int64_t number, const GraphRecord& graph) {
  if (graph.damaged) {
    process.problems.push_back({Problem::Severity::warning,
                                fmt::format("the {} graph of {} is not whole: its text is not what its checksum says",
                                            nameOf(graph), toString(id)),
                                fmt::format("{}:{}", log_.files[graph.payload.file].path, graph.payload.line), -1});
  }
  attempt(process, id, number).graphs.push_back(graph);
}

CompileId LogBuilder::idOf(const Json& record) {
  return {integerOf(record, "compiled_autograd_id"), integerOf(record, "frame_id"),
          integerOf(record, "frame_compile_id")};
}
std::int64_t LogBuilder::attemptOf(const Json& record) {
  return std::max<std::int64_t>(integerOf(record, "attempt").value_or(0), 0);
}

std::optional<GraphKind> LogBuilder::graphOf(const Json& record) {
  if (const auto* artifact = record.find("artifact"); artifact != nullptr && artifact->isObject())
    return graphKindOfRecord(artifact->textAt("name"));
  for (const auto& member : record.members()) {
    if (const auto kind = graphKindOfRecord(member.key)) return kind;
  }
  return std::nullopt;
}

void LogBuilder::addRecord(Process& process, const Json& record, std::uint64_t offset, std::string_view time) {
  ++process.records;
  if (const auto rank = integerOf(record, "rank"); rank && !process.rank) process.rank = rank;
  if (const auto* text = record.find("str"); text != nullptr && text->isArray() && text->items().size() == 2) {
    const auto number = static_cast<std::size_t>(&process - log_.processes.data());
    const auto items = text->items();
    if (items[0].isString() && items[1].kind() == Json::Kind::integer)
      names_[number][items[1].integer()] = items[0].text();
    return;
  }
  if (const auto* table = record.find("string_table"); table != nullptr && table->isArray()) {
    auto& names = names_[&process - log_.processes.data()];
    for (const auto& text : table->items()) {
      const auto next = std::ssize(names);
      if (text.isString()) names[next] = text.text();
    }
    return;
  }
  if (!record.find("frame_id") && !record.find("compiled_autograd_id")) return;
  if (const auto* start = record.find("dynamo_start"); start != nullptr) addStart(process, record, *start);
  auto& tried = attempt(process, idOf(record), attemptOf(record));
  if (tried.time.empty()) tried.time = time;
  for (const auto key : described) {
    if (record.find(key)) tried.descriptions.push_back(offset);
  }
  if (const auto* metrics = record.find("compilation_metrics"); metrics != nullptr && metrics->isObject())
    addMetrics(process, record, *metrics, false);
  if (const auto* metrics = record.find("bwd_compilation_metrics"); metrics != nullptr && metrics->isObject())
    addMetrics(process, record, *metrics, true);
}

void LogBuilder::addStart(Process& process, const Json& record, const Json& start) {
  auto& started = compile(process, idOf(record), attemptOf(record) == 0);
  const auto* stack = start.find("stack");
  if (stack == nullptr || !stack->isArray() || stack->items().empty() || !started.function.empty()) return;
  const auto& frame = stack->items().back();
  started.function = frame.textAt("name");
  started.line = static_cast<int>(std::clamp<std::int64_t>(integerOf(frame, "line").value_or(0), 0, 1 << 30));
  const auto& names = names_[&process - log_.processes.data()];
  if (const auto file = names.find(integerOf(frame, "filename").value_or(-1)); file != names.end())
    started.file = file->second;
}

void LogBuilder::addMetrics(Process& process, const Json& record, const Json& metrics, bool isBackward) {
  auto& of = compile(process, idOf(record), false);
  auto& tried = attempt(process, idOf(record), attemptOf(record));
  if (isBackward) {
    tried.backwardSeconds = secondsOf(metrics, "backward_cumulative_compile_time_us", 1e-6);
    if (!tried.backwardSeconds) tried.backwardSeconds = secondsOf(metrics, "duration_us", 1e-6);
    return;
  }
  if (of.function.empty()) {
    of.function = metrics.textAt("co_name");
    of.file = metrics.textAt("co_filename");
    of.line = static_cast<int>(std::clamp<std::int64_t>(integerOf(metrics, "co_firstlineno").value_or(0), 0, 1 << 30));
  }
  tried.seconds = secondsOf(metrics, "entire_frame_compile_time_s");
  tried.backendSeconds = secondsOf(metrics, "backend_compile_time_s");
  tried.failType = metrics.textAt("fail_type");
  tried.failReason = firstLine(metrics.textAt("fail_reason"));
  if (const auto* restarts = metrics.find("restart_reasons"); restarts != nullptr && restarts->isArray()) {
    for (const auto& reason : restarts->items()) {
      if (reason.isString()) tried.restarts.push_back(firstLine(reason.text()));
    }
  }
}

void LogBuilder::addCode(Process& process, const Json& record, OutputCodeRecord code) {
  attempt(process, idOf(record), attemptOf(record)).code.push_back(std::move(code));
}

void LogBuilder::addBreakReason(Process& process, const Json& record, std::string_view firstLine) {
  attempt(process, idOf(record), attemptOf(record)).graphBreak = firstLine;
}

void LogBuilder::addRecompileReasons(Process& process, const CompileId& id, std::int64_t number,
                                     std::string_view text) {
  auto& reasons = attempt(process, id, number).recompileReasons;
  for (auto& reason : recompileReasonsOf(text))
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(std::move(reason));
}

void LogBuilder::finish() {
  std::stable_sort(log_.processes.begin(), log_.processes.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  for (auto& process : log_.processes) {
    for (const auto& compile : process.compiles) {
      if (compile.attempts.empty()) continue;
      const auto& last = compile.attempts.back();
      const auto lacks = [&](GraphKind has, GraphKind missing) {
        return last.find(has) != nullptr && last.find(missing) == nullptr;
      };
      std::string message;
      if (lacks(GraphKind::forward, GraphKind::backward)) message = "has a forward graph and no backward graph";
      if (lacks(GraphKind::joint, GraphKind::forward)) message = "has a joint graph and no forward graph";
      if (lacks(GraphKind::dynamo, GraphKind::joint) && !last.find(GraphKind::inference) &&
          !last.find(GraphKind::forward))
        message = "has Dynamo's graph alone";
      if (message.empty()) continue;
      process.problems.push_back(
          {Problem::Severity::note,
           fmt::format("{} {}: the log ends before, the compile failed, or its result came from a cache",
                       nameOf(compile), message),
           log_.files[process.file].path, -1});
    }
  }
}

}  // namespace retrograd::jobs
