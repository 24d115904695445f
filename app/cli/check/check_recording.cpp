#include "app/cli/check/check_recording.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/terminal.h"
#include "core/formats/recording/recording.h"
#include "core/torch/session/replay.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"

namespace retrograd::cli {
namespace {

struct Verdict {
  std::string word;    ///< "pass", "fail", "not possible"
  std::string reason;  ///< of all but a pass
  int code = allWell;
};

std::string count(std::size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

/// "op 57, aten.addmm.default, train.py:12 in step"
std::string placeOf(const Analysis& analysis, BoundSymbolId op) {
  const auto& recorded = analysis.file.recording->op(op);
  const auto line = recordedLine(*analysis.document, op);
  return fmt::format("op {} (#{}), {}{}{}", recorded.number, op.index,
                     analysis.document->symbol(analysis.document->boundSymbol(op).symbol).name,
                     line.empty() ? "" : ", ", line);
}

Verdict verdictOf(const Analysis& analysis, const ReplayResult& result) {
  const bool comparable = result.notComparable.empty();
  if (!result.unsound.empty()) return {"fail", result.unsound.front(), checkFailed};
  if (result.differing > 0 && comparable)
    return {"fail", fmt::format("{} is not as recorded", placeOf(analysis, result.first.front().op)), checkFailed};
  if (!result.stopped.empty()) return {"not possible", result.stopped, badInputOrUse};
  if (!analysis.file.recording->damage.empty())
    return {"not possible", "the recording is damaged or cut off: " + analysis.file.recording->damage, badInputOrUse};
  if (result.differing > 0)
    return {"not possible", "hashes are not comparable, because " + result.notComparable.front(), badInputOrUse};
  if (result.compared == 0) return {"not possible", "the recording has no hash to compare", badInputOrUse};
  return {"pass", {}, allWell};
}

/// Ops that nobody can run: "c10d.allreduce_.default (2 times)".
std::vector<std::string> opaqueNames(const Analysis& analysis, const ReplayResult& result) {
  std::map<std::string, int> calls;
  for (const auto op : result.opaque)
    ++calls[analysis.document->symbol(analysis.document->boundSymbol(op).symbol).name];
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

void printText(const std::string& path, const Analysis& analysis, const ReplayResult& result, const Verdict& verdict) {
  const auto& document = *analysis.document;
  const auto& recording = *analysis.file.recording;
  const auto style = verdict.code == allWell         ? Style::good
                     : verdict.code == badInputOrUse ? Style::warning
                                                     : Style::bad;
  fmt::print("{}  {}  {} hashes of {} compared, {} differ{}{}\n", styled(stdout, style, verdict.word), path,
             result.compared, count(result.ran, "op"), result.differing, verdict.reason.empty() ? "" : ": ",
             verdict.reason);
  const auto detail = [](const std::string& line) { fmt::print("      {}\n", line); };
  for (const auto& one : result.first) {
    detail(fmt::format("differs: {}: {}", placeOf(analysis, one.op), printCall(document, one.op)));
    if (!one.cause.empty()) detail("  the first one; " + one.cause);
  }
  if (result.differing > result.first.size())
    detail(fmt::format("and {} more", result.differing - result.first.size()));
  if (!result.stopped.empty() && result.stoppedAt)
    detail(fmt::format("{} of {} ran; then {} could not", result.ran, count(result.ops, "op"),
                       placeOf(analysis, result.stoppedAt)));
  for (const auto& line : result.unsound) detail("not sound: " + line);
  for (const auto& line : result.notComparable) detail("note: hashes may differ, because " + line);
  if (result.afterUninitialized > 0)
    detail(fmt::format("note: {} read memory that nobody had written; what is in it is chance",
                       count(result.afterUninitialized, "result")));
  if (!result.opaque.empty()) {
    std::string names;
    for (const auto& name : opaqueNames(analysis, result)) names += (names.empty() ? "" : ", ") + name;
    detail("note: not run, their recorded values were taken: " + names);
  }
  detail(fmt::format("recorded: updates {}; links: {} backward ops linked, {} ambiguous, {} without",
                     updatesOf(recording), recording.linked, recording.ambiguous, recording.unlinked));
  if (!recording.damage.empty() && verdict.word == "fail") detail("damaged or cut off: " + recording.damage);
  if (result.unsound.empty() && result.stopped.empty())
    detail("health: loss, gradients that an optimizer read, parameters and buffers are finite");
  for (const auto& note : result.notes) detail("note: " + note);
}

void printJson(const std::string& path, const Analysis& analysis, const ReplayResult& result, const Verdict& verdict) {
  const auto& recording = *analysis.file.recording;
  nlohmann::ordered_json json{{"file", path},
                              {"verdict", verdict.word},
                              {"updates", recording.updates},
                              {"ops", result.ops},
                              {"ran", result.ran},
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
  json["opaque"] = opaqueNames(analysis, result);
  json["not_comparable"] = result.notComparable;
  json["not_sound"] = result.unsound;
  json["notes"] = result.notes;
  if (!recording.damage.empty()) json["damage"] = recording.damage;
  fmt::print("{}\n", dumpJson(json, 2));
}

}  // namespace

int checkRecording(const std::string& path, const std::string& format, const Progress& progress) {
  const auto analysis = open(path, {}, progress);
  const auto result = replay(analysis, progress);
  const auto verdict = verdictOf(*analysis, result);
  clearProgress();
  if (format == "json") printJson(path, *analysis, result, verdict);
  else if (!terminal().quiet || verdict.code != allWell) printText(path, *analysis, result, verdict);
  return verdict.code;
}

}  // namespace retrograd::cli
