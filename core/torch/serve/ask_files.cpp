// Questions about a whole file: opened, judged, compared with another, its parameters and its memory.
#include <fmt/format.h>

#include <cmath>

#include "core/derivation/gradient_of.h"
#include "core/formats/recording/recording.h"
#include "core/questions/op_facts.h"
#include "core/questions/why_recorded.h"
#include "core/torch/checking/check.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/experiments/counterpart.h"
#include "core/torch/page/gather_page.h"
#include "core/torch/serve/open_files.h"

namespace retrograd {
namespace {

using Json = Method::Json;
using Files = std::shared_ptr<OpenFiles>;

const Method::Parameter fileParameter{"file", "integer", "number that `open` gave; absent: the file asked about last"};

void addRecording(Json& answer, const Analysis& analysis) {
  const auto& recording = *analysis.file.recording;
  answer["device"] = recording.device;
  answer["updates"] = recording.updates;
  if (!recording.error.empty()) answer["ended_by"] = recording.error;
  if (!recording.damage.empty()) answer["damage"] = recording.damage;
  if (recording.withoutGradient.empty()) return;
  answer["parameters_without_gradient"] = recording.withoutGradient;
  for (const auto& cause : causesOfNoGradient(analysis, recording.withoutGradient))
    if (cause.stop)
      answer["why_without_gradient"].push_back(
          {{"parameters", cause.parameters}, {"reason", cause.reason}, {"line", cause.line}});
}

Json openAnswer(const OpenFiles& files, const OpenFile& file) {
  Json answer{{"file", files.numberOf(file)}, {"path", file.request.path}, {"kind", file.kind}};
  if (!file.analysis) {
    answer["peak_bytes"] = file.memory->history.peakBytes;
    answer["events"] = file.memory->history.events;
    return answer;
  }
  const auto& analysis = *file.analysis;
  if (!analysis.file.torchVersion.empty()) answer["torch"] = analysis.file.torchVersion;
  answer["ops"] = toJson(opCounts(analysis));
  if (analysis.file.recording) addRecording(answer, analysis);
  answer["derived"] = analysis.derived();
  answer["inputs"] = analysis.inputSource;
  answer["problems"] = Json::array();
  for (const auto& problem : analysis.problems)
    answer["problems"].push_back(problem.place.empty() ? problem.message : problem.place + ": " + problem.message);
  return answer;
}

/// The one report, with the code of each claim's line.
Json verdictAnswer(OpenFiles& files, OpenFile& file, bool strict, const Progress& progress) {
  if (!file.report) {
    if (file.memory) badUse("is a memory snapshot, which has no gradients to judge: ask `memory`", file.request.path);
    file.report = judgeOpened(file.request, files.analysis(file), progress).report;
  }
  auto answer = toJson(*file.report, decide(*file.report, strict));
  for (auto& claim : answer["claims"]) {
    const BoundSymbolId op(claim.value("op", -1));
    if (op && file.analysis->document->contains(op)) claim["op"] = opAnswer(*file.analysis, op);
  }
  return answer;
}

Json rowAnswer(const Analysis& analysis, const RunDifference& row) {
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json("infinite"); };
  Json json{{"op", opAnswer(analysis, row.opA)},
            {"value", analysis.document->displayName(row.valueA)},
            {"relative", number(row.relative)},
            {"largest", number(row.largest)}};
  if (!row.note.empty()) json["note"] = row.note;
  return json;
}

Json compareAnswer(OpenFiles& files, const Json& arguments, const Progress& progress) {
  auto& file = files.at(arguments);
  const auto& a = files.analysis(file);
  Counterpart other;
  other.path = textIn(arguments, "path");
  if (const auto text = textIn(arguments, "dtype"); !text.empty()) {
    other.precision = dtypeFromTorchName(text);
    if (!other.precision) badUse("dtype is to be float64, float32, bfloat16 or float16");
  }
  if (other.path.empty() && !other.precision) badUse("compare needs the path of another file, or a dtype");
  const auto b = openCounterpart(*a, other, progress);
  const auto comparison = compareRuns(*a, *b, other.precision ? 1e-2 : 1e-4, {}, progress);
  Json answer{{"values_compared", comparison.rows.size()},
              {"first_divergence", nullptr},
              {"around", Json::array()},
              {"only_in_first", Json::array()},
              {"only_in_second", Json::array()},
              {"notes", comparison.notes}};
  const auto first = comparison.firstDivergence.value_or(comparison.rows.size());
  if (first < comparison.rows.size()) answer["first_divergence"] = rowAnswer(*a, comparison.rows[first]);
  for (auto i = first > 2 ? first - 2 : 0; i < std::min(comparison.rows.size(), first + 5); ++i)
    answer["around"].push_back(rowAnswer(*a, comparison.rows[i]));
  for (const auto op : comparison.onlyInA) answer["only_in_first"].push_back(opAnswer(*a, op));
  for (const auto op : comparison.onlyInB) answer["only_in_second"].push_back(opAnswer(*b, op));
  return answer;
}

Json parametersAnswer(OpenFiles& files, OpenFile& file, const std::string& part) {
  const auto& analysis = *files.analysis(file);
  const auto& document = *analysis.document;
  const auto gradients = gradientsOfInputs(analysis);
  Json answer{{"parameters", Json::array()}};
  const auto& inputs = analysis.computation().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& input = inputs[i];
    const auto& name = input.target.empty() ? input.name : input.target;
    if (!input.value || name.find(part) == std::string::npos) continue;
    constexpr const char* kinds[]{"input", "parameter", "buffer", "constant", "token", "object"};
    Json one{{"name", name},
             {"value", document.displayName(input.value)},
             {"kind", kinds[static_cast<int>(input.kind)]},
             {"type", shortType(document, input.value)},
             {"requires_grad", input.requiresGrad}};
    if (input.requiresGrad)
      one["gradient"] = i < gradients.size() && gradients[i] ? Json(document.displayName(gradients[i])) : Json();
    answer["parameters"].push_back(std::move(one));
  }
  return answer;
}

Json snapshotAnswer(const RecordedMemory& memory) {
  Json answer{{"peak_bytes", memory.history.peakBytes},
              {"reserved_bytes", memory.history.reservedBytes},
              {"request_failed_at_event", memory.failed >= 0 ? Json(memory.failed) : Json()},
              {"findings", Json::array()}};
  for (const auto& finding : memory.findings)
    answer["findings"].push_back(
        {{"kind", name(finding.kind)}, {"bytes", finding.bytes}, {"text", finding.text}, {"line", finding.line}});
  const auto held = heldAfter(memory.history, memory.first());
  for (const auto& [word, by] :
       {std::pair("categories", MemoryGrouping::category), std::pair("lines", MemoryGrouping::line),
        std::pair("modules", MemoryGrouping::module)})
    for (const auto& group : memoryGroups(held, *memory.places, by))
      answer[word].push_back({{"name", group.name}, {"bytes", group.bytes}, {"blocks", group.count}});
  return answer;
}

}  // namespace

std::vector<Method> fileMethods(const Files& files) {
  return {
      {"open",
       "Open a model (.pt2, TorchScript, printed traces), a recorded training step (a folder of retrograd.record), a "
       "torch.compile log, a .retrograd session or a CUDA memory snapshot. Says what it is and what is wrong with the "
       "file itself. Everything else is asked of the file opened last.",
       {{"path", "string", "file or folder", true}},
       [files](const Json& arguments, const Progress& progress) {
         return openAnswer(*files, files->open(textIn(arguments, "path"), progress));
       }},
      {"verdict",
       "Judge it: are the gradients right, are all numbers finite, did the optimizer do what it should? Runs it. Gives "
       "pass, fail or not possible, and claims, the worst first, each with its line of Python and what to do. Ask this "
       "first.",
       {{"strict", "boolean", "suspicions fail, too"}, fileParameter},
       [files](const Json& arguments, const Progress& progress) {
         return verdictAnswer(*files, files->at(arguments), arguments.value("strict", false), progress);
       }},
      {"compare",
       "Run it and another file (or itself in another dtype) side by side: the first op whose values differ, the ops "
       "around it, ops that only one has.",
       {{"path", "string", "the other file"},
        {"dtype", "string", "instead: float64, float32, bfloat16 or float16, for the same file in that precision"},
        fileParameter},
       [files](const Json& arguments, const Progress& progress) { return compareAnswer(*files, arguments, progress); }},
      {"parameters",
       "Parameters, buffers and inputs: type, whether a gradient is wanted, and which value is the gradient (null: "
       "there is none, and why_no_gradient says why).",
       {{"containing", "string", "only names that contain this"}, fileParameter},
       [files](const Json& arguments, const Progress&) {
         return parametersAnswer(*files, files->at(arguments), textIn(arguments, "containing"));
       }},
      {"updates",
       "Of a recorded step: what each update of the optimizer did to each parameter: norms of gradient, weight and "
       "change, clip factor, moments, and why the first update that is not finite is not.",
       {{"parameter", "string", "only this one"}, fileParameter},
       [files](const Json& arguments, const Progress& progress) {
         return files->command(files->at(arguments), "updates " + textIn(arguments, "parameter"), progress);
       }},
      {"memory",
       "Of a snapshot: what held memory at its peak, by category, line and module, with findings (leaks, memory held "
       "too long). Of anything else: live bytes over the step as the traces have it, and the modules at the peak.",
       {fileParameter},
       [files](const Json& arguments, const Progress& progress) {
         auto& file = files->at(arguments);
         if (file.memory) return snapshotAnswer(*file.memory);
         auto answer = files->command(file, "memory", progress);
         answer.erase("timeline");
         return answer;
       }},
  };
}

}  // namespace retrograd
