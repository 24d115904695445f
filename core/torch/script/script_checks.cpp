// Commands that run a part or another form of the model to answer: gradients checked, terms of a gradient, another
// partition.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/enum_array.h"
#include "core/formats/folder/folder.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/questions/accumulation.h"
#include "core/stepping/op_range.h"
#include "core/torch/experiments/grad_check.h"
#include "core/torch/experiments/what_if.h"
#include "core/torch/script/script_state.h"
#include "core/torch/session/record_run.h"

namespace retrograd {
namespace {

using Json = ScriptState::Json;

CommandAnswer terms(ScriptState& s, const Words& words, const Progress& progress) {
  const auto found = gradientTerms(*s.analysis, s.value(words), recordRun(*s.analysis, {}, progress));
  CommandAnswer answer;
  answer.json = {{"value", s.valueName(found.value)},
                 {"gradient", found.gradient ? Json(s.valueName(found.gradient)) : Json(nullptr)},
                 {"norm", found.norm},
                 {"terms", Json::array()}};
  answer.text = found.gradient ? fmt::format("gradient of {}: {}, norm {:.6g}", s.valueName(found.value),
                                             s.valueName(found.gradient), found.norm)
                               : s.valueName(found.value) + " has no gradient" +
                                     s.noGradientText(whyNoGradient(*s.analysis, found.value));
  for (const auto& term : found.terms) {
    answer.json["terms"].push_back({{"gradient", s.valueName(term.gradient)},
                                    {"norm", term.norm},
                                    {"op", s.opJson(term.op)},
                                    {"origin", s.opJson(term.origin)}});
    answer.text += fmt::format(
        "\n  {:>12.6g}  {} from {}", term.norm, s.valueName(term.gradient),
        term.origin ? "#" + std::to_string(term.origin.index) + " " + s.opText(term.origin) : std::string("outside"));
  }
  return answer;
}

/// The folder of the graph that is open, where it is one of a recorded step and has PyTorch's own gradients; else
/// empty.
std::string folderWithGradients(const std::string& model) {
  try {
    const auto folder = std::filesystem::path(model).parent_path().string();
    const auto choice = chooseGraph(folder);
    if (!choice || choice->graph.values.empty()) return {};
    const auto values = readSafetensors(choice->graph.values).tensors;
    const bool has = std::ranges::any_of(values, [](const auto& value) { return value.first.starts_with("grad."); });
    return has ? folder : std::string();
  } catch (const Error&) {  // the model itself was read
    return {};
  }
}

std::string_view name(GradientCheckRow::Verdict verdict) {
  static constexpr EnumArray<GradientCheckRow::Verdict, std::string_view, 4> names{"right", "wrong", "at a kink",
                                                                                   "unknown"};
  return names[verdict];
}

/// In one sentence.
std::string verdictOf(const GradientCheck& check) {
  using Verdict = GradientCheckRow::Verdict;
  const auto is = [&](Verdict verdict) { return std::ranges::count(check.rows, verdict, &GradientCheckRow::verdict); };
  if (check.rows.empty()) return "nothing flows in that has a gradient: nothing was checked";
  if (!check.passed) return "a gradient is WRONG";
  const auto open = is(Verdict::atKink) + is(Verdict::unknown);
  if (open > 0)
    return fmt::format("no gradient is wrong; of {} of {} nothing can be said there", open, check.rows.size());
  return check.lostBackwards.empty() ? "the gradients are right" : "the gradients are the derivatives of these ops";
}

std::string rowText(const GradientCheckRow& row) {
  const bool isCompared = row.verdict != GradientCheckRow::Verdict::atKink && std::isfinite(row.finiteDifferences);
  auto text = fmt::format("\n  {:<24} ", row.input);
  if (isCompared)
    text += fmt::format("off by {:.2g} from finite differences, by {:.2g} from LibTorch", row.finiteDifferences,
                        row.libTorch);
  return text + (isCompared && !row.note.empty() ? "; " : "") + row.note;
}

CommandAnswer checkGradient(ScriptState& s, const Words& words, const Progress& progress) {
  const auto check = checkGradients(*s.analysis, opRange(*s.analysis, words.rest), progress);
  CommandAnswer answer{.text = verdictOf(check),
                       .json = {{"passed", check.passed}, {"directions", check.directions}, {"rows", Json::array()}},
                       .bad = !check.passed};
  answer.json["lost_backwards"] = check.lostBackwards;
  for (const auto& lost : check.lostBackwards)
    answer.text += "\n  the file does not hold the backward that PyTorch runs for " + lost;
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(std::isnan(x) ? "nan" : "inf"); };
  for (const auto& row : check.rows) {
    answer.json["rows"].push_back({{"input", row.input},
                                   {"verdict", name(row.verdict)},
                                   {"finite_differences", number(row.finiteDifferences)},
                                   {"libtorch", number(row.libTorch)},
                                   {"note", row.note}});
    answer.text += rowText(row);
  }
  if (const auto folder = folderWithGradients(s.analysis->file.path); !folder.empty())
    answer.text += fmt::format(
        "\nThis is about the derivatives of the ops. `retrograd check {}` compares them with the "
        "gradients that PyTorch computed in the step",
        folder);
  return answer;
}

CommandAnswer tryPartition(ScriptState& s, const Words& words, const Progress& progress) {
  auto partition = s.analysis->request.partition;
  for (std::size_t i = 0; i < words.all.size(); ++i) {
    if (words.all[i] == "recompute") partition.recompute.push_back(words.at(++i, "all, a module's path or #OP"));
    else if (words.all[i] == "save") std::erase(partition.recompute, words.at(++i, "what is recomputed now"));
    else if (words.all[i] == "min-cut") partition.kind = PartitionOptions::minCut;
    else if (words.all[i] == "default") partition.kind = PartitionOptions::defaultKind, partition.budget.reset();
    else if (words.all[i] == "budget") partition.budget = words.bytes(++i);
    else
      throw Error(ErrorCode::badUse,
                  "'" + words.all[i] + "' is unknown; expected recompute X, save X, min-cut, default or budget BYTES");
  }
  const auto answer = whatIf(*s.analysis, partition, s.session.measures(), progress);
  return {
      fmt::format("saved {} -> {} bytes, peak {} -> {} bytes, {} op(s) recomputed, {} {:.3g} ms more",
                  answer.before.savedBytes, answer.after.savedBytes, answer.before.peakBytes, answer.after.peakBytes,
                  answer.after.recomputedOps, answer.measured ? "measured" : "estimated", answer.extraSeconds * 1e3),
      {{"before",
        {{"saved_bytes", answer.before.savedBytes},
         {"peak_bytes", answer.before.peakBytes},
         {"recomputed_ops", answer.before.recomputedOps}}},
       {"after",
        {{"saved_bytes", answer.after.savedBytes},
         {"peak_bytes", answer.after.peakBytes},
         {"recomputed_ops", answer.after.recomputedOps}}},
       {"extra_seconds", answer.extraSeconds},
       {"measured", answer.measured}}};
}

}  // namespace

std::vector<ScriptCommand> checkCommands() {
  return {
      {"terms VALUE", "the gradients that are summed into the gradient of a value, with their norms", terms},
      {"check-gradient #OP|VALUE|#OP to #OP|module PATH|all",
       "compare gradients with finite differences and LibTorch, in double precision", checkGradient},
      {"what-if [recompute X] [save X] [min-cut] [budget BYTES] [default]",
       "saved bytes, peak and time of another partition", tryPartition},
  };
}

}  // namespace retrograd
