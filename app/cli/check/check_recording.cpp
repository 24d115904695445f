#include "app/cli/check/check_recording.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/report.h"
#include "core/formats/recording/recording.h"
#include "core/torch/reading/formats.h"
#include "core/torch/steps/step_report.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Ops that nobody can run: "c10d.allreduce_.default (2 times)".
std::vector<std::string> namesNotRun(const Document& document, const ReplayResult& result) {
  std::map<std::string, int> calls;
  for (const auto op : result.notRun) ++calls[document.symbol(op).name];
  std::vector<std::string> names;
  for (const auto& [name, times] : calls)
    names.push_back(times == 1 ? name : fmt::format("{} ({} times)", name, times));
  return names;
}

/// What was counted on the way, for programs.
Json detailsOf(const JudgedStep& judged) {
  const auto& document = *judged.analysis->document;
  const auto& recording = *judged.analysis->file.recording;
  const auto& replay = judged.step.replay;
  Json json{
      {"updates", recording.updates},
      {"ops", replay.ops},
      {"ran", replay.ran},
      {"not_run", replay.notRun.size()},
      {"opaque", namesNotRun(document, replay)},
      {"hashes", replay.compared},
      {"differing", replay.differing},
      {"after_uninitialized", replay.afterUninitialized},
      {"not_comparable", replay.notComparable},
      {"links", {{"linked", recording.linked}, {"ambiguous", recording.ambiguous}, {"without", recording.unlinked}}},
      {"gradients", judged.step.opinion.compared}};
  json["gradients_not_compared"] = Json::array();
  for (const auto& one : judged.step.opinion.notCompared) {
    Json entry{{"reason", one.why}};
    if (one.op) entry["op"] = one.op.index;
    if (one.op) entry["line"] = recordedLine(document, one.op);
    json["gradients_not_compared"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::shared_ptr<const Analysis> openAgainst(const RecordingChecks& checks, const Progress& progress) {
  if (checks.against.empty()) return nullptr;
  if (!isOf(Format::recording, checks.against))
    badUse("is not a recording; --against needs one whose step is right", checks.against);
  return open(checks.against, {}, progress);
}

int checkRecording(const std::string& path, const RecordingChecks& checks, const Progress& progress) {
  std::optional<JudgedStep> good;
  if (const auto against = openAgainst(checks, progress)) good = runStep(against, progress);
  const auto judged = runStep(open(path, {}, progress), progress);
  const auto report = reportOf(judged, good ? &*good : nullptr);
  const auto decision = decide(report, checks.strict);
  if (checks.format == "json") {
    auto json = toJson(report, decision);
    json["details"] = detailsOf(judged);
    fmt::print("{}\n", dumpJson(json, 2));
  } else {
    printReport(report, decision);
  }
  return exitCode(decision.verdict);
}

}  // namespace retrograd::cli
