#include "core/torch/script/script_state.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/near_names.h"
#include "core/questions/why.h"
#include "core/stepping/tensor_slice.h"
#include "core/trace/print/printer.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

ScriptState::Json statisticsJson(const TensorStatistics& s) {
  return {{"elements", s.elements},
          {"nan", s.nan},
          {"inf", s.inf},
          {"zeros", s.zeros},
          {"subnormal", s.subnormal},
          {"min", s.min},
          {"max", s.max},
          {"mean", s.mean},
          {"standard_deviation", s.standardDeviation},
          {"norm", s.norm},
          {"norm1", s.norm1}};
}

std::string statisticsText(const TensorStatistics& s) {
  auto text = fmt::format("min {:.6g}, max {:.6g}, mean {:.6g}, std {:.6g}, norm {:.6g}, 1-norm {:.6g}", s.min, s.max,
                          s.mean, s.standardDeviation, s.norm, s.norm1);
  if (s.zeros) text += fmt::format(", {} zeros", s.zeros);
  if (s.nan) text += fmt::format(", {} NaN", s.nan);
  if (s.inf) text += fmt::format(", {} Inf", s.inf);
  if (s.subnormal) text += fmt::format(", {} subnormal", s.subnormal);
  return text;
}

/// Of an op that is derived, that of the op of the computation that it comes from where it has none of its own.
std::string moduleOf(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto* from = bound.origin.op ? &document.boundSymbol(bound.origin.op) : &bound;
  return std::string(document.text(bound.module ? bound.module : from->module));
}

/// A value that met the condition among what an op made; none where it is no longer there.
ValueId culpritOf(const Session& session, const Document& document, const Breakpoint& breakpoint, BoundSymbolId op) {
  for (auto output : document.outputs(op)) {
    if (!output) continue;
    const auto state = session.state(output);
    if (!state.present || state.number) continue;
    const auto& value = document.value(output);
    if (meets(breakpoint, session.statistics(output), state.meta, value.meta ? document.meta(value.meta) : state.meta))
      return output;
  }
  return {};
}

}  // namespace

std::string ScriptState::opText(BoundSymbolId op) const { return op ? printCall(document, op) : "none"; }

std::string ScriptState::placeText(BoundSymbolId op) const {
  std::string text;
  if (const auto module = moduleOf(document, op); !module.empty()) text = "module " + module;
  if (const auto* frame = shownFrame(sourceOf(document, op))) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", std::filesystem::path(frame->file).filename().string(),
                        frame->line);
    if (!frame->code.empty()) text += ": " + frame->code;
  }
  return text;
}

ScriptState::Json ScriptState::opJson(BoundSymbolId op) const {
  if (!op) return nullptr;
  const auto& bound = document.boundSymbol(op);
  const auto position = session.positionOf(op);
  const auto* frame = shownFrame(sourceOf(document, op));
  return {{"id", op.index},
          {"op", document.opName(op)},
          {"position", position ? Json(*position) : Json(nullptr)},
          {"module", moduleOf(document, op)},
          {"role", name(bound.origin.role)},
          {"source", frame ? Json(fmt::format("{}:{}", frame->file, frame->line)) : Json(nullptr)}};
}

std::string ScriptState::valueName(ValueId value) const { return value ? document.displayName(value) : "none"; }

CommandAnswer ScriptState::where(StopReason reason) const {
  CommandAnswer answer;
  const auto next = session.opAt(session.position());
  const bool backward = session.position() >= session.forwardSize();
  answer.json = {{"stopped", name(reason)}, {"position", session.position()},
                 {"size", session.size()},  {"trace", backward ? "backward" : "forward"},
                 {"next", opJson(next)},    {"live_bytes", session.liveBytes()}};
  answer.text = fmt::format("step {} of {}, {}", session.position(), session.size(), backward ? "backward" : "forward");
  if (reason == StopReason::end || reason == StopReason::start)
    answer.text += reason == StopReason::end ? ", at the end" : ", at the start";
  if (reason == StopReason::cancelled) answer.text += ", stopped before its end";
  if (const auto hit = session.hitBreakpoint(); hit && reason == StopReason::breakpoint) {
    answer.json["breakpoint"] = hit->index + 1;
    answer.text +=
        fmt::format(", stopped by breakpoint {} ({})", hit->index + 1, retrograd::describe(*analysis, hit->breakpoint));
    addCulprit(answer, hit->breakpoint);
  }
  if (next) answer.text += fmt::format("\n=> #{} {}", next.index, opText(next));
  for (auto watch : watches) {
    const auto shown = summary(watch);
    answer.text += "\n   " + shown.text;
    answer.json["watches"].push_back(shown.json);
  }
  return answer;
}

void ScriptState::addCulprit(CommandAnswer& answer, const Breakpoint& breakpoint) const {
  if (!looksAtOutputs(breakpoint) || session.position() == 0) return;
  const auto op = session.opAt(session.position() - 1);
  if (!concerns(*analysis, breakpoint, op)) return;
  answer.json["culprit"] = opJson(op);
  answer.text += fmt::format("\n!! #{} {}", op.index, opText(op));
  if (const auto place = placeText(op); !place.empty()) answer.text += "\n   " + place;
  if (const auto value = culpritOf(session, document, breakpoint, op)) {
    answer.json["culprit"]["value"] = valueName(value);
    answer.text += "\n   " + summary(value).text;
  }
}

CommandAnswer ScriptState::summary(ValueId value) const {
  const auto state = session.state(value);
  CommandAnswer answer{.json = {{"value", valueName(value)}, {"id", value.index}, {"present", state.present}}};
  if (state.number) {
    answer.json["number"] = state.number->asDouble();
    answer.text = fmt::format("{} = {}", valueName(value), state.number->asDouble());
  } else if (!state.present) {
    answer.json["reason"] = state.reason;
    answer.text = fmt::format("{}: {}", valueName(value), state.reason);
  } else {
    const auto statistics = session.statistics(value);
    answer.json["type"] = typeComment(state.meta);
    answer.json["statistics"] = statisticsJson(statistics);
    answer.text = fmt::format("{}: {}, {}", valueName(value), typeComment(state.meta), statisticsText(statistics));
  }
  return answer;
}

ValueId ScriptState::value(const Words& words, std::size_t i) const {
  const auto text = words.at(i, "a value's name");
  if (const auto found = findValue(*analysis, text)) return *found;
  throw Error(ErrorCode::badUse, "there is no value '" + text + "'" + didYouMean(text, valueNames(*analysis)));
}

std::string ScriptState::noGradientText(const WhyNoGradient& why) const {
  std::string text;
  if (!why.stops.empty()) text = ": " + describe(document, why.stops.front());
  return why.stops.size() == 1 ? text : text + "; `why-no-gradient " + valueName(why.value) + "` has all that is known";
}

ValueId ScriptState::valueOrGradient(const Words& words) const {
  if (words.all.size() >= 2 && words.all[0] == "grad") {
    const auto why = whyNoGradient(*analysis, value(words, 1));
    if (!why.gradient) throw Error(ErrorCode::badUse, words.all[1] + " has no gradient" + noGradientText(why));
    return why.gradient;
  }
  return value(words);
}

BoundSymbolId ScriptState::op(const Words& words) const {
  return parseBreakpoint(*analysis, words.at(0, "an op: #12, or a value it makes")).op;
}

NamedValue ScriptState::namedValue(const std::string& text) const {
  Words words;
  const auto [name, slice] = splitSlice(text);
  const auto space = name.find(' ');
  words.all = space == std::string::npos
                  ? std::vector{name}
                  : std::vector{name.substr(0, space), name.substr(name.find_first_not_of(' ', space))};
  if (words.all[0].empty()) words.all.clear();
  return {valueOrGradient(words), slice};
}

}  // namespace retrograd
