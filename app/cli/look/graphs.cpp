#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/look/save_plan.h"
#include "app/cli/parsing/command.h"
#include "app/cli/parsing/input.h"
#include "app/cli/parsing/options.h"
#include "core/formats/folder/folder.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/job_log.h"
#include "core/torch/reading/formats.h"

namespace retrograd::cli {
namespace {

using Json = nlohmann::ordered_json;

struct GraphsOptions {
  std::string path;
  bool savePlan = false;
  SavePlanOptions plan;  ///< its format and withNodes for the list too
};

std::string rankText(const jobs::Process& process) {
  return process.rank                                ? fmt::format("rank {}", *process.rank)
         : process.pid.empty() || process.pid == "-" ? std::string("process")
                                                     : "process " + process.pid;
}

void printAttempt(const jobs::Attempt& attempt) {
  for (const auto& reason : attempt.recompileReasons) fmt::print("    compiled again: {}\n", reason);
  fmt::print("    attempt {}", attempt.number);
  if (attempt.seconds) fmt::print("  {:.2f} s", *attempt.seconds);
  if (attempt.backwardSeconds) fmt::print(", backward {:.2f} s", *attempt.backwardSeconds);
  fmt::print("\n");
  if (!attempt.failType.empty()) fmt::print("      failed: {}: {}\n", attempt.failType, attempt.failReason);
  if (!attempt.graphBreak.empty()) fmt::print("      graph break: {}\n", attempt.graphBreak);
  for (const auto& graph : attempt.graphs)
    fmt::print("      {:<17} {:>6} ops{}\n", nameOf(graph), graph.ops, graph.damaged ? "  not whole" : "");
}

void printText(const jobs::JobLog& log) {
  for (const auto& process : log.processes) {
    fmt::print("{}{}  {}\n", rankText(process), process.torchVersion.empty() ? "" : "  PyTorch " + process.torchVersion,
               log.files[process.file].path);
    for (const auto& compile : process.compiles) {
      fmt::print("  {}", nameOf(compile));
      if (!compile.function.empty()) fmt::print("  {}", compile.function);
      if (!compile.file.empty()) fmt::print("  {}:{}", compile.file, compile.line);
      if (!compile.id.frame && !compile.id.compiledAutograd) fmt::print("  graphs of no compile");
      if (const auto [place, count] = placeAmongRecompiles(process, compile); count > 1)
        fmt::print("  compile {} of {}", place, count);
      fmt::print("\n");
      for (const auto& attempt : compile.attempts) printAttempt(attempt);
    }
  }
}

/// The values of a graph as its text has them: what scripts/check-graphs compares with Python's own parser.
Json nodesOf(const fx::Graph& graph) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < graph.valueCount(); ++i) names.push_back(graph.valueName(i));
  const auto typeText = [&](std::size_t value) -> Json {
    const auto type = graph.valueType(value);
    return type == fx::noIndex ? Json() : Json(graph.types[type].text);
  };
  const auto shapeOf = [&](Json& json, std::size_t value) {
    const auto index = graph.valueType(value);
    if (index == fx::noIndex || graph.types[index].kind != fx::Type::Kind::tensor) return;
    const auto& type = graph.types[index];
    json["dtype"] = shortName(type.dtype);
    json["sizes"] = type.sizes;
    if (type.hasStrides) json["strides"] = type.strides;
  };
  Json json{{"class", graph.className}, {"form", writtenBy(graph)}, {"inputs", Json::array()},
            {"nodes", Json::array()},   {"outputs", Json::array()}, {"bodies", Json::array()}};
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    Json input{{"name", names[i]}, {"type", typeText(i)}};
    shapeOf(input, i);
    if (!graph.inputs[i].descriptor.text.empty()) input["descriptor"] = graph.inputs[i].descriptor.text;
    json["inputs"].push_back(std::move(input));
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& node = graph.nodes[i];
    const auto value = graph.inputs.size() + i;
    Json uses = Json::array();
    fx::forEachValue(node.call, [&](std::size_t used) { uses.push_back(names[used]); });
    const bool isCall = node.call.is(fx::Expression::Kind::call);
    Json entry{{"name", node.name},
               {"line", node.line},
               {"target", isCall ? Json(toText(node.call.items[0], names)) : Json()},
               {"uses", std::move(uses)},
               {"text", toText(node.call, names)},
               {"type", typeText(value)}};
    shapeOf(entry, value);
    if (node.source != fx::noIndex) {
      const auto& source = graph.sources[node.source];
      if (!source.file.empty())
        entry["source"] = {
            {"file", source.file}, {"line", source.line}, {"function", source.function}, {"code", source.code}};
      if (source.backward) entry["backward"] = true;
      if (source.checkpoint) entry["checkpoint"] = *source.checkpoint;
      if (!source.policy.empty()) entry["policy"] = source.policy;
    }
    json["nodes"].push_back(std::move(entry));
  }
  for (const auto& output : graph.outputs) {
    Json entry{{"value", toText(output.value, names)}};
    if (!output.descriptor.text.empty()) entry["descriptor"] = output.descriptor.text;
    json["outputs"].push_back(std::move(entry));
  }
  for (const auto& body : graph.bodies) json["bodies"].push_back(nodesOf(body));
  return json;
}

Json jsonOf(const jobs::JobLog& log, const jobs::GraphRecord& graph, bool withNodes) {
  Json json{{"kind", name(graph.kind)},
            {"ops", graph.ops},
            {"line", graph.payload.line},
            {"file", log.files[graph.payload.file].path}};
  if (!graph.record.empty()) json["record"] = graph.record;
  if (graph.damaged) json["damaged"] = true;
  if (!withNodes) return json;
  const auto text = payloadText(log, graph.payload);
  const auto place = placeOf(log, graph.payload);
  json["text"] = text;
  try {
    json["graph"] = nodesOf(fx::looksLikeRepro(text) ? fx::readRepro(text, place).graph : fx::readGraph(text, place));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::badInput) throw;
    json["error"] = e.what();
  }
  return json;
}

Json jsonOf(const std::vector<Problem>& problems) {
  Json json = Json::array();
  for (const auto& problem : problems) json.push_back({{"place", problem.place}, {"message", problem.message}});
  return json;
}

Json jsonOf(const jobs::JobLog& log, const jobs::Attempt& attempt, bool withNodes) {
  Json json{{"attempt", attempt.number}};
  if (!attempt.time.empty()) json["time"] = attempt.time;
  if (attempt.seconds) json["seconds"] = *attempt.seconds;
  if (attempt.backendSeconds) json["backendSeconds"] = *attempt.backendSeconds;
  if (attempt.backwardSeconds) json["backwardSeconds"] = *attempt.backwardSeconds;
  if (!attempt.failType.empty()) json["failure"] = {{"type", attempt.failType}, {"reason", attempt.failReason}};
  if (!attempt.graphBreak.empty()) json["graphBreak"] = attempt.graphBreak;
  if (!attempt.recompileReasons.empty()) json["recompileReasons"] = attempt.recompileReasons;
  if (!attempt.restarts.empty()) json["restarts"] = attempt.restarts;
  json["graphs"] = Json::array();
  for (const auto& graph : attempt.graphs) json["graphs"].push_back(jsonOf(log, graph, withNodes));
  return json;
}

void printJson(const jobs::JobLog& log, bool withNodes) {
  Json json{{"path", log.path}, {"processes", Json::array()}, {"problems", jsonOf(log.problems)}};
  for (const auto& process : log.processes) {
    Json p{{"rank", process.rank ? Json(*process.rank) : Json()},
           {"pid", process.pid},
           {"file", log.files[process.file].path},
           {"torchVersion", process.torchVersion},
           {"records", process.records},
           {"compiles", Json::array()},
           {"problems", jsonOf(process.problems)}};
    for (const auto& compile : process.compiles) {
      Json c{{"id", nameOf(compile)},
             {"function", compile.function},
             {"file", compile.file},
             {"line", compile.line},
             {"attempts", Json::array()}};
      if (const auto [place, count] = placeAmongRecompiles(process, compile); count > 1)
        c["recompile"] = {{"place", place}, {"of", count}};
      for (const auto& attempt : compile.attempts) c["attempts"].push_back(jsonOf(log, attempt, withNodes));
      p["compiles"].push_back(std::move(c));
    }
    json["processes"].push_back(std::move(p));
  }
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

// Folders that the Python package wrote.

void printText(const RecordedFolder& folder) {
  fmt::print("rank {} of {}  {}{}{}  {}\n", folder.rank, folder.ranks, folder.kind,
             folder.step ? fmt::format("  step {}", *folder.step) : "",
             folder.torchVersion.empty() ? "" : "  PyTorch " + folder.torchVersion, folder.path);
  if (!folder.failure.empty()) fmt::print("  failed: {}\n", folder.failure);
  for (const auto& graph : folder.graphs) {
    fmt::print("  {:<17} {:>6} ops", graph.name, graph.ops);
    for (const auto& text : {graph.mode, graph.compile, graph.location})
      if (!text.empty()) fmt::print("  {}", text);
    if (graph.name == folder.openGraph && folder.graphs.size() > 1) fmt::print("  opens first");
    fmt::print("\n");
    if (!graph.notFinite.empty()) fmt::print("    NaN or Inf: {}\n", fmt::join(graph.notFinite, ", "));
    for (const auto& line : graph.cannotReplay) fmt::print("    cannot be replayed: {}\n", line);
  }
  for (const auto& line : folder.cannotReplay) fmt::print("  cannot be replayed: {}\n", line);
  if (!folder.numbers.empty()) fmt::print("  recorded numbers: {}\n", folder.numbers);
}

Json jsonOf(const RecordedFolder& folder) {
  Json json{{"path", folder.path},
            {"kind", folder.kind},
            {"rank", folder.rank},
            {"ranks", folder.ranks},
            {"step", folder.step ? Json(*folder.step) : Json()},
            {"torchVersion", folder.torchVersion},
            {"failure", folder.failure},
            {"numbers", folder.numbers},
            {"open", folder.openGraph},
            {"cannotReplay", folder.cannotReplay},
            {"graphs", Json::array()}};
  for (const auto& graph : folder.graphs)
    json["graphs"].push_back({{"name", graph.name},
                              {"model", graph.model},
                              {"values", graph.values},
                              {"ops", graph.ops},
                              {"mode", graph.mode},
                              {"compile", graph.compile},
                              {"location", graph.location},
                              {"notFinite", graph.notFinite},
                              {"cannotReplay", graph.cannotReplay}});
  return json;
}

/// The recorded folders that `path` means, by rank and name; none where it is anything else.
std::vector<RecordedFolder> recordedFolders(const std::string& path) {
  auto paths = recordedFoldersIn(path);
  if (std::error_code ignored; std::filesystem::exists(std::filesystem::path(path) / "retrograd.json", ignored))
    paths = {path};
  std::vector<RecordedFolder> folders;
  for (const auto& each : paths) folders.push_back(readRecordedFolder(each));
  std::stable_sort(folders.begin(), folders.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return folders;
}

int listFolders(const std::vector<RecordedFolder>& folders, const GraphsOptions& options) {
  if (options.savePlan || options.plan.withNodes)
    badUse("--save-plan and --nodes are for logs of torch.compile; this folder holds captured steps", options.path);
  if (options.plan.format != "json") {
    for (const auto& folder : folders) printText(folder);
    return allWell;
  }
  Json json{{"path", options.path}, {"folders", Json::array()}};
  for (const auto& folder : folders) json["folders"].push_back(jsonOf(folder));
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  return allWell;
}

int runGraphs(const GraphsOptions& options, const Progress& progress) {
  if (const auto folders = recordedFolders(options.path); !folders.empty()) return listFolders(folders, options);
  if (std::error_code error; std::filesystem::is_directory(options.path, error) && !isOf(Format::job, options.path))
    if (const auto below = jobsBelow(options.path); !below.empty())
      badUse("is a folder without a log of torch.compile" + below, options.path);
  const auto log = jobs::openJobLog(options.path, progress);
  auto problems = log.problems;
  for (const auto& process : log.processes)
    problems.insert(problems.end(), process.problems.begin(), process.problems.end());
  if (options.savePlan) {
    printSavePlan(log, options.plan, progress);
  } else if (options.plan.format == "json") {
    printJson(log, options.plan.withNodes);
  } else {
    printText(log);
  }
  reportProblems(problems);
  return allWell;
}

Run setUpGraphs(Parser parser) {
  auto options = std::make_shared<GraphsOptions>();
  parser
      .add("log", options->path,
           "a structured trace log, a folder of logs, a folder that tlparse made, text of TORCH_LOGS, or a folder of "
           "the Python package")
      .required();
  addFormat(parser, options->plan.format);
  parser.flag(
      "--nodes", options->plan.withNodes,
      "with --format json: every graph with its text and its nodes; with --save-plan: every tensor of the forward");
  const auto plan = parser.flag("--save-plan", options->savePlan,
                                "what the forward of a compile saves for its backward, folded over equal layers");
  parser
      .add("--compile", options->plan.compile,
           "with --save-plan: which compile, such as 0/0; default: the first with a backward")
      .needs(plan);
  parser.add("--rank", options->plan.rank, "with --save-plan: of logs of several ranks, which one").needs(plan);
  parser
      .add("--budgets", options->plan.budgets,
           "with --save-plan: bytes and peak of Retrograd's own split of the job's model, at this many budgets")
      .needs(plan)
      .range(2, 32);
  return [options](const Progress& progress) { return runGraphs(*options, progress); };
}

const Registration registrationGraphs("graphs",
                                      "list ranks, compiles, attempts and graphs of a job's logs, or of captured steps",
                                      setUpGraphs);

}  // namespace
}  // namespace retrograd::cli
