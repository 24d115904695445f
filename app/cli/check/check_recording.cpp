#include "app/cli/check/check_recording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/terminal.h"
#include "core/formats/recording/recording.h"
#include "core/torch/steps/step_opinion.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"

namespace retrograd::cli {
namespace {

struct Verdict {
  std::string word;    ///< "pass", "fail", "not possible"
  std::string reason;  ///< of all but a pass
  int code = allWell;
};

/// The findings, as they are judged.
struct Found {
  const Analysis& analysis;
  const ReplayResult& replay;
  const StepOpinion& opinion;
  const OptimizerUpdates& updates;
  BoundSymbolId root;               ///< of a step that is not sound: where its first NaN was made
  std::vector<std::string> faults;  ///< by cut; empty: it is none
};

/// Why the first update that is not finite is not; empty: all are.
std::string badUpdate(const Found& found) {
  const auto& bad = found.updates.firstBad;
  return bad ? describe(found.updates, *found.analysis.document, *bad) : std::string();
}

std::string count(std::size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

/// "op 57, aten.addmm.default, train.py:12 in step"
std::string placeOf(const Analysis& analysis, BoundSymbolId op) {
  const auto& recorded = analysis.file.recording->op(op);
  const auto line = recordedLine(*analysis.document, op);
  return fmt::format("op {} (#{}), {}{}{}", recorded.number, op.index, analysis.document->symbol(op).name,
                     line.empty() ? "" : ", ", line);
}

/// The first cut that is a fault; none where there is none.
std::optional<std::size_t> firstFault(const Found& found) {
  for (std::size_t i = 0; i < found.faults.size(); ++i)
    if (!found.faults[i].empty()) return i;
  return std::nullopt;
}

Verdict verdictOf(const Found& found) {
  const auto& analysis = found.analysis;
  const auto& result = found.replay;
  const bool comparable = result.notComparable.empty();
  if (const auto fault = firstFault(found)) return {"fail", describe(found.opinion.cuts[*fault]), checkFailed};
  if (const auto bad = badUpdate(found); !bad.empty()) return {"fail", bad, checkFailed};
  if (!result.unsound.empty())
    return {"fail", result.unsound.front() + (found.root ? "; made by " + placeOf(analysis, found.root) : ""),
            checkFailed};
  if (result.differing > 0 && comparable)
    return {"fail", fmt::format("{} is not as recorded", placeOf(analysis, result.first.front().op)), checkFailed};
  if (!result.stopped.empty()) return {"not possible", result.stopped, badInputOrUse};
  if (!analysis.file.recording->damage.empty())
    return {"not possible", "the recording is damaged or cut off: " + analysis.file.recording->damage, badInputOrUse};
  if (result.differing > 0 && found.opinion.compared == 0)
    return {"not possible", "hashes are not comparable, because " + result.notComparable.front(), badInputOrUse};
  if (result.compared == 0 && found.opinion.compared == 0)
    return {"not possible", "the recording has no hash to compare", badInputOrUse};
  return {"pass", {}, allWell};
}

/// Ops that nobody can run: "c10d.allreduce_.default (2 times)".
std::vector<std::string> namesNotRun(const Analysis& analysis, const ReplayResult& result) {
  std::map<std::string, int> calls;
  for (const auto op : result.notRun) ++calls[analysis.document->symbol(op).name];
  std::vector<std::string> names;
  for (const auto& [name, times] : calls)
    names.push_back(times == 1 ? name : fmt::format("{} ({} times)", name, times));
  return names;
}

std::string updatesOf(const StepRecording& recording) {
  std::string text;
  for (const auto update : recording.updates) text += (text.empty() ? "" : ", ") + std::to_string(update);
  return text;
}

/// The custom backwards that are not the derivative and no fault either: "Square, MyGelu".
std::string notJudged(const Found& found) {
  std::string names;
  std::set<std::string> listed;
  for (std::size_t i = 0; i < found.faults.size(); ++i)
    if (const auto& cut = found.opinion.cuts[i];
        cut.kind == GradientCut::Kind::function && found.faults[i].empty() && listed.insert(cut.name).second)
      names += (names.empty() ? "the backward of " : ", ") + cut.name;
  return names;
}

void printOpinion(const Found& found) {
  const auto& opinion = found.opinion;
  fmt::print("      second opinion: {} compared with the derivative{}\n", count(opinion.compared, "gradient"),
             opinion.notCompared > 0 ? fmt::format(", {} not", opinion.notCompared) : "");
  for (std::size_t i = 0; i < opinion.cuts.size(); ++i) {
    const auto& fault = found.faults[i];
    fmt::print("      {}: {}{}\n", fault.empty() ? "cut" : styled(stdout, Style::bad, "fault"),
               describe(opinion.cuts[i]), fault.empty() ? "" : " (" + fault + ")");
  }
  if (const auto names = notJudged(found); !names.empty())
    fmt::print("      note: not judged, as they may be meant: {}; --strict and --against judge them\n", names);
  for (const auto& note : opinion.notes) fmt::print("      note: not compared: {}\n", note);
}

void printHashes(const Found& found) {
  const auto& analysis = found.analysis;
  const auto& result = found.replay;
  const auto detail = [](const std::string& line) { fmt::print("      {}\n", line); };
  for (const auto& one : result.first) {
    detail(fmt::format("differs: {}: {}", placeOf(analysis, one.op), printCall(*analysis.document, one.op)));
    if (!one.cause.empty()) detail("  the first one; " + one.cause);
  }
  if (result.differing > result.first.size())
    detail(fmt::format("and {} more", result.differing - result.first.size()));
  if (!result.stopped.empty() && result.stoppedAt)
    detail(fmt::format("stopped after {} of {}: {} could not run", result.ran + result.notRun.size(),
                       count(result.ops, "op"), placeOf(analysis, result.stoppedAt)));
}

void printText(const std::string& path, const Found& found, const Verdict& verdict) {
  const auto& result = found.replay;
  const auto& recording = *found.analysis.file.recording;
  const auto style = verdict.code == allWell         ? Style::good
                     : verdict.code == badInputOrUse ? Style::warning
                                                     : Style::bad;
  fmt::print("{}  {}  {} hashes of {} compared, {} differ{}{}\n", styled(stdout, style, verdict.word), path,
             result.compared, count(result.ran, "op"), result.differing, verdict.reason.empty() ? "" : ": ",
             verdict.reason);
  const auto detail = [](const std::string& line) { fmt::print("      {}\n", line); };
  printHashes(found);
  if (const auto bad = badUpdate(found); !bad.empty()) detail("not sound: " + bad);
  for (const auto& line : result.unsound) detail("not sound: " + line);
  for (const auto& step : found.updates.steps)
    if (step.wasSkipped) detail(fmt::format("note: {}: {}", titleOf(found.updates, step), whySkipped(step)));
  for (const auto& line : result.notComparable) detail("note: hashes may differ, because " + line);
  if (result.afterUninitialized > 0)
    detail(fmt::format("note: {} read memory that nobody had written; what is in it is chance",
                       count(result.afterUninitialized, "result")));
  if (const auto n = result.notRun.size(); n > 0)
    detail(fmt::format("note: {} not run, recorded values were taken: {}", count(n, "op"),
                       fmt::join(namesNotRun(found.analysis, result), ", ")));
  detail(fmt::format("recorded: updates {}; links: {} backward ops linked, {} ambiguous, {} without",
                     updatesOf(recording), recording.linked, recording.ambiguous, recording.unlinked));
  if (!recording.damage.empty() && verdict.word == "fail") detail("damaged or cut off: " + recording.damage);
  printOpinion(found);
  if (result.unsound.empty() && badUpdate(found).empty() && result.stopped.empty())
    detail("health: loss, gradients that an optimizer read, parameters and buffers are finite");
  for (const auto& note : result.notes) detail("note: " + note);
}

nlohmann::ordered_json opinionJson(const Found& found) {
  const auto& opinion = found.opinion;
  nlohmann::ordered_json json{{"compared", opinion.compared}, {"not_compared", opinion.notCompared}};
  json["cuts"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < opinion.cuts.size(); ++i) {
    const auto& cut = opinion.cuts[i];
    nlohmann::ordered_json one{
        {"kind", name(cut.kind)},   {"name", cut.name},      {"op", cut.op.index},          {"line", cut.line},
        {"backward", cut.backward}, {"text", describe(cut)}, {"parameters", cut.parameters}};
    if (cut.factor) one["factor"] = *cut.factor;
    if (!found.faults[i].empty()) one["fault"] = found.faults[i];
    json["cuts"].push_back(std::move(one));
  }
  json["notes"] = opinion.notes;
  return json;
}

void printJson(const std::string& path, const Found& found, const Verdict& verdict) {
  const auto& analysis = found.analysis;
  const auto& result = found.replay;
  const auto& recording = *analysis.file.recording;
  nlohmann::ordered_json json{{"file", path},
                              {"verdict", verdict.word},
                              {"updates", recording.updates},
                              {"ops", result.ops},
                              {"ran", result.ran},
                              {"not_run", result.notRun.size()},
                              {"compared", result.compared},
                              {"differing", result.differing},
                              {"after_uninitialized", result.afterUninitialized}};
  if (!verdict.reason.empty()) json["reason"] = verdict.reason;
  json["first"] = nlohmann::ordered_json::array();
  for (const auto& one : result.first) {
    json["first"].push_back({{"op", one.op.index},
                             {"number", recording.op(one.op).number},
                             {"name", analysis.document->opName(one.op)},
                             {"line", recordedLine(*analysis.document, one.op)}});
    if (!one.cause.empty()) json["first"].back()["cause"] = one.cause;
  }
  json["links"] = {{"linked", recording.linked}, {"ambiguous", recording.ambiguous}, {"without", recording.unlinked}};
  json["opaque"] = namesNotRun(analysis, result);
  json["not_comparable"] = result.notComparable;
  json["not_sound"] = result.unsound;
  json["second_opinion"] = opinionJson(found);
  if (const auto updates = jsonOf(found.updates, *analysis.document); updates.contains("first_bad"))
    json["bad_update"] = updates["first_bad"];
  json["notes"] = result.notes;
  for (const auto& step : found.updates.steps)
    if (step.wasSkipped) json["notes"].push_back(titleOf(found.updates, step) + ": " + whySkipped(step));
  if (!recording.damage.empty()) json["damage"] = recording.damage;
  fmt::print("{}\n", dumpJson(json, 2));
}

}  // namespace

int checkRecording(const std::string& path, const RecordingChecks& checks, const Progress& progress) {
  std::optional<ReplayedStep> good;
  if (!checks.against.empty()) {
    if (!isRecording(checks.against))
      badUse("is not a recording; --against needs one whose step is right", checks.against);
    good = replayWithOpinion(open(checks.against, {}, progress), progress);
  }
  const auto analysis = open(path, {}, progress);
  const auto step = replayWithOpinion(analysis, progress);
  Found found{*analysis, step.replay, step.opinion, step.updates, step.root, {}};
  for (const auto& cut : step.opinion.cuts)
    found.faults.push_back(faultOf(cut, *analysis->file.recording, checks.strict, good ? &good->opinion : nullptr));
  const auto verdict = verdictOf(found);
  clearProgress();
  if (checks.format == "json") printJson(path, found, verdict);
  else if (!terminal().quiet || verdict.code != allWell) printText(path, found, verdict);
  return verdict.code;
}

}  // namespace retrograd::cli
