// Commands that explain: where an op comes from, where a NaN does, what is saved and why, what has no gradient.
#include <fmt/format.h>

#include <algorithm>

#include "core/questions/lost_backward.h"
#include "core/questions/nan_walk.h"
#include "core/questions/why.h"
#include "core/stepping/bad_places.h"
#include "core/torch/script/script_state.h"
#include "core/torch/session/record_run.h"
#include "core/torch/steps/optimizer_updates.h"
#include "core/trace/print/printer.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

using Json = ScriptState::Json;

CommandAnswer list(ScriptState& s, const Words& words, const Progress&) {
  const auto around = words.all.empty() ? 5 : words.count(0);
  const auto position = s.session.position();
  CommandAnswer answer{.json = {{"ops", Json::array()}}};
  for (auto i = position > around ? position - around : 0; i < std::min(s.session.size(), position + around + 1); ++i) {
    const auto op = s.session.opAt(i);
    const auto comment = printComment(s.document, op);
    answer.text +=
        fmt::format("{}{} {:>9}  #{} {}{}", answer.text.empty() ? "" : "\n", i == position ? "=>" : "  ",
                    fmt::format("step {}", i + 1), op.index, s.opText(op), comment.empty() ? "" : "  # " + comment);
    answer.json["ops"].push_back(s.opJson(op));
  }
  return answer;
}

CommandAnswer origin(ScriptState& s, const Words& words, const Progress&) {
  const auto asked = words.all.empty() ? s.session.opAt(s.session.position()) : s.op(words);
  if (!asked) throw Error(ErrorCode::badUse, "the run is at its end: name an op");
  const auto from = OriginLinks::origin(s.document, asked);
  const auto forward = s.analysis->links.forwardOf(s.document, asked);
  CommandAnswer answer;
  answer.json = {
      {"op", s.opJson(asked)}, {"origin", s.opJson(from)}, {"forward", s.opJson(forward)}, {"derived", Json::array()}};
  answer.text = fmt::format("#{} {}\n  from #{} {}", asked.index, s.opText(asked), from.index,
                            from ? s.opText(from) : "an input");
  for (auto derived : s.analysis->links.derived(from)) {
    answer.json["derived"].push_back(s.opJson(derived));
    answer.text += fmt::format("\n    {} #{} {}", name(s.document.boundSymbol(derived).origin.role), derived.index,
                               s.opText(derived));
  }
  return answer;
}

/// "model.py:31: y = x.log()": where an op is in Python; empty where nothing is known.
std::string lineOf(const Document& document, BoundSymbolId op) {
  const auto* frame = shownFrame(sourceOf(document, op));
  return frame ? fmt::format("{}:{}{}", frame->file, frame->line, frame->code.empty() ? "" : ": " + frame->code)
               : std::string();
}

bool roleIsBackward(const Document& document, BoundSymbolId op) {
  const auto role = document.boundSymbol(op).origin.role;
  return role != Role::none && role != Role::forward;
}

/// "\n  model.py:31: y = torch.log(x)"; empty where nothing is known.
std::string placeBelow(const ScriptState& s, BoundSymbolId op) {
  const auto place = op ? s.placeText(op) : std::string();
  return place.empty() ? place : "\n  " + place;
}

void addOtherRoots(const ScriptState& s, const NanWalk& walk, CommandAnswer& answer) {
  answer.json["other_roots"] = Json::array();
  for (const auto& root : walk.otherRoots) {
    answer.json["other_roots"].push_back({{"root", s.opJson(root.op)},
                                          {"value", s.valueName(root.value)},
                                          {"forward", s.opJson(root.forward)},
                                          {"explanation", root.explanation},
                                          {"line", lineOf(s.document, root.op)}});
    answer.text += root.op ? fmt::format("\nanother root: #{} {}", root.op.index, s.opText(root.op))
                           : "\nanother root: " + badInputText(*s.analysis, root.value, root.statistics);
    if (!root.explanation.empty()) answer.text += "\n  " + root.explanation;
    if (root.op && root.forward && roleIsBackward(s.document, root.op))
      answer.text += fmt::format("\n  derivative of #{} {}", root.forward.index, s.opText(root.forward));
    answer.text += placeBelow(s, root.op);
  }
}

/// Of a root that is an input: its places, and the op of the walk that reads it, with its line of Python.
void addRootInput(const ScriptState& s, const NanWalk& walk, CommandAnswer& answer) {
  const auto& input = walk.path.back();
  answer.text += "root: " + badInputText(*s.analysis, input.value, input.statistics);
  const auto reader = walk.path.size() > 1 ? walk.path[walk.path.size() - 2].op : BoundSymbolId();
  if (!reader) return;
  answer.text += fmt::format("\n  read by #{} {}", reader.index, s.opText(reader)) + placeBelow(s, reader);
  answer.json["line"] = lineOf(s.document, reader);
}

/// A NaN that a lost backward made is in no value of the file.
CommandAnswer allFinite(const ScriptState& s) {
  CommandAnswer answer{"all values of the run are finite", {{"bad", false}, {"lost_backwards", Json::array()}}};
  const auto lost = lostFunctions(s.document, s.analysis->computation().trace.ops);
  for (const auto& function : lost) {
    answer.json["lost_backwards"].push_back(function);
    answer.text += "\n  the file does not hold the backward that PyTorch runs for " + function;
  }
  if (!lost.empty())
    answer.text +=
        "\nWhere a captured step has a NaN all the same, that backward made it: `retrograd check FOLDER` names it";
  return answer;
}

CommandAnswer walkNan(ScriptState& s, const Words& words, const Progress& progress) {
  const auto record = recordRun(*s.analysis, {}, progress);
  const auto walk =
      words.all.empty() ? walkToRoots(*s.analysis, record) : walkToRoot(*s.analysis, record, s.valueOrGradient(words));
  if (walk.path.empty()) return allFinite(s);
  CommandAnswer answer{.bad = true};
  answer.json = {{"bad", true},
                 {"path", Json::array()},
                 {"root", s.opJson(walk.root)},
                 {"forward", s.opJson(walk.forward)},
                 {"nan_from", s.opJson(walk.nanFrom)},
                 {"explanation", walk.explanation}};
  for (const auto& way : walk.path) {
    answer.json["path"].push_back({{"value", s.valueName(way.value)},
                                   {"op", s.opJson(way.op)},
                                   {"nan", way.statistics.nan},
                                   {"inf", way.statistics.inf}});
    answer.text +=
        fmt::format("{}: {} NaN, {} Inf of {}  {}\n", s.valueName(way.value), way.statistics.nan, way.statistics.inf,
                    way.statistics.elements,
                    way.op ? fmt::format("#{} {}", way.op.index, s.opText(way.op)) : std::string("(an input)"));
  }
  if (walk.nanFrom)
    answer.text += fmt::format("NaN first at #{} {}{}\n", walk.nanFrom.index, s.opText(walk.nanFrom),
                               walk.root ? std::string() : placeBelow(s, walk.nanFrom));
  answer.json["line"] = lineOf(s.document, walk.root);
  if (walk.root) answer.text += fmt::format("root: #{} {}", walk.root.index, s.opText(walk.root));
  else addRootInput(s, walk, answer);
  if (!walk.explanation.empty()) answer.text += "\n  " + walk.explanation;
  const bool isBackward = walk.forward && walk.root && roleIsBackward(s.document, walk.root);
  if (isBackward) answer.text += fmt::format("\n  derivative of #{} {}", walk.forward.index, s.opText(walk.forward));
  answer.text += placeBelow(s, walk.root);
  addOtherRoots(s, walk, answer);
  return answer;
}

CommandAnswer updates(ScriptState& s, const Words& words, const Progress& progress) {
  const auto found = optimizerUpdates(s.analysis, progress);
  const auto isKnown = [&](const OptimizerStep& step) {
    return std::ranges::any_of(step.parameters,
                               [&](const ParameterUpdate& update) { return update.parameter == words.rest; });
  };
  if (!words.rest.empty() && std::ranges::none_of(found.steps, isKnown))
    throw Error(ErrorCode::badUse, "no optimizer updates a parameter of this name", words.rest);
  CommandAnswer answer{.text = textOf(found, s.document, words.rest)};
  answer.text.pop_back();
  answer.json = jsonOf(found, s.document, words.rest);
  answer.bad = found.firstBad.has_value();
  return answer;
}

CommandAnswer saved(ScriptState& s, const Words&, const Progress&) {
  CommandAnswer answer{.json = {{"saved", Json::array()}}};
  std::vector<WhySaved> all;
  for (std::size_t i = 0; i < s.analysis->backward.savedCount; ++i)
    all.push_back(whySaved(*s.analysis, s.analysis->backward.inputs[i]));
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.storageBytes > b.storageBytes; });
  for (const auto& why : all) {
    answer.json["saved"].push_back({{"value", s.valueName(why.value)},
                                    {"bytes", why.bytes},
                                    {"storage_bytes", why.storageBytes},
                                    {"readers", why.readers.size()}});
    // A parameter, an input or a view of one is in memory anyway.
    const auto bytes =
        why.storageBytes ? fmt::format("{} bytes", why.storageBytes) : std::string("no bytes of its own");
    answer.text += fmt::format(
        "{}{}: {}, {}, read by {}", answer.text.empty() ? "" : "\n", s.valueName(why.value), bytes,
        why.maker ? "#" + std::to_string(why.maker.index) + " " + s.opText(why.maker) : "an input", why.readers.size());
  }
  return answer;
}

CommandAnswer explainSaved(ScriptState& s, const Words& words, const Progress&) {
  const auto why = whySaved(*s.analysis, s.value(words));
  CommandAnswer answer;
  answer.json = {{"value", s.valueName(why.value)},   {"saved", why.saved},           {"bytes", why.bytes},
                 {"storage_bytes", why.storageBytes}, {"maker", s.opJson(why.maker)}, {"from", why.from},
                 {"last_read", why.lastRead},         {"readers", Json::array()}};
  answer.text = why.saved ? fmt::format("{} is saved: {} bytes, from step {} to step {}", s.valueName(why.value),
                                        why.storageBytes, why.from + 1, why.lastRead + 1)
                          : s.valueName(why.value) + " is not saved";
  for (const auto& reader : why.readers) {
    answer.json["readers"].push_back(
        {{"op", s.opJson(reader.op)}, {"argument", reader.argument}, {"origin", s.opJson(reader.origin)}});
    answer.text += fmt::format("\n  read as {} by #{} {}, the derivative of {}", reader.argument, reader.op.index,
                               s.opText(reader.op), reader.origin ? s.document.opName(reader.origin) : "an input");
  }
  const auto& plan = why.recompute;
  if (!plan.impossible.empty()) answer.text += "\n  it cannot be recomputed: " + plan.impossible;
  else if (!plan.ops.empty())
    answer.text += fmt::format("\n  recomputing it runs {} {} again, about {} bytes moved{}", plan.ops.size(),
                               plan.ops.size() == 1 ? "op" : "ops", plan.cost, plan.draws ? ", a draw replayed" : "");
  answer.json["recompute"] = {{"possible", plan.impossible.empty()},
                              {"reason", plan.impossible},
                              {"cost", plan.cost},
                              {"extra_saved_bytes", plan.extraSaved},
                              {"ops", Json::array()}};
  for (auto again : plan.ops) answer.json["recompute"]["ops"].push_back(s.opJson(again));
  return answer;
}

CommandAnswer explainNoGradient(ScriptState& s, const Words& words, const Progress&) {
  const auto why = whyNoGradient(*s.analysis, s.value(words));
  CommandAnswer answer;
  answer.json = {{"value", s.valueName(why.value)},
                 {"gradient", why.gradient ? Json(s.valueName(why.gradient)) : Json(nullptr)},
                 {"stops", Json::array()}};
  if (why.gradient)
    answer.text = fmt::format("{} has a gradient: {}", s.valueName(why.value), s.valueName(why.gradient));
  for (const auto& stop : why.stops) {
    answer.text +=
        (answer.text.empty() ? "" : "\n") + std::string(name(stop.kind)) + ": " + retrograd::describe(s.document, stop);
    Json path = Json::array();
    for (auto via : stop.path) path.push_back(s.document.opName(via));
    answer.json["stops"].push_back({{"kind", name(stop.kind)},
                                    {"op", s.opJson(stop.op)},
                                    {"text", retrograd::describe(s.document, stop)},
                                    {"line", retrograd::lineOf(s.document, stop)},
                                    {"path", path}});
  }
  return answer;
}

}  // namespace

std::vector<ScriptCommand> questionCommands() {
  return {
      {"list [N]", "the ops around the current step", list},
      {"origin [#OP]", "the op of the computation that an op comes from, and all ops derived from that", origin},
      {"walk-nan [[grad] VALUE]",
       "from a NaN or infinity back to the op that produced it, with module and line of Python", walkNan},
      {"updates [PARAMETER]",
       "of a recording: norms of gradient, weight and update, clip factor and moments of each parameter, and why the "
       "first update that is not finite is not",
       updates},
      {"saved", "the tensors that are saved for the backward", saved},
      {"why-saved VALUE", "the ops that read it in the backward, its bytes, what recomputing it would cost",
       explainSaved},
      {"why-no-gradient VALUE", "each place where its gradient is cut off", explainNoGradient},
  };
}

}  // namespace retrograd
