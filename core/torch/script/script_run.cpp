// Commands that move the run, and those that say where it stops.
#include <fmt/format.h>

#include <algorithm>

#include "core/torch/script/script_state.h"

namespace retrograd {
namespace {

using Json = ScriptState::Json;

CommandAnswer stepForward(ScriptState& s, const Words& words, const Progress& progress) {
  const auto position = s.session.position();
  return s.where(s.session.continueTo(position + std::min(words.count(0), s.session.size() - position), progress));
}

CommandAnswer stepBack(ScriptState& s, const Words& words, const Progress& progress) {
  const auto position = s.session.position();
  return s.where(s.session.continueTo(position - std::min(words.count(0), position), progress));
}

/// Over or out of what the position is at or in.
ScriptCommand::Handler past(Step step) {
  return [step](ScriptState& s, const Words& words, const Progress& progress) {
    auto position = s.session.position();
    for (std::size_t i = 0, count = words.count(0); i < count; ++i) {
      progress.check();
      const auto goal = s.steps.goal(step, position);
      if (goal == position) break;  // at the end, or the start: any number of steps more leads nowhere else
      position = goal;
    }
    return s.where(s.session.continueTo(position, progress));
  };
}

CommandAnswer runTo(ScriptState& s, const Words& words, const Progress& progress) {
  auto text = words.at(0, "a step (`step 12`), an op (#12), `border` or `end`");
  const bool isStep = text == "step";
  if (isStep) text = words.at(1, "the number of a step");
  auto target = s.session.size();
  if (text == "border") target = s.session.forwardSize();
  else if (text != "end") {
    const bool isPosition = isStep || std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    target = isPosition ? words.whole(isStep ? 1 : 0, "a step")
                        : s.session.positionOf(s.op(words)).value_or(s.session.size());
  }
  return s.where(s.session.runTo(target, progress));
}

CommandAnswer addBreakpoint(ScriptState& s, const Words& words, const Progress&) {
  s.breakpoints.push_back(parseBreakpoint(*s.analysis, words.rest));
  s.session.setBreakpoints(s.breakpoints);
  const auto& made = s.breakpoints.back();
  CommandAnswer answer{fmt::format("breakpoint {}: {}", s.breakpoints.size(), retrograd::describe(*s.analysis, made)),
                       {{"breakpoint", s.breakpoints.size()}, {"where", retrograd::describe(*s.analysis, made)}}};
  if (made.where == Breakpoint::Where::op) {
    answer.text += " " + s.opText(made.op);
    const auto asked = words.all.empty() ? std::string() : words.all[0];
    if (asked.starts_with('#') && asked != fmt::format("#{}", made.op.index))
      answer.text += fmt::format(" (the first op derived from {})", asked);
  }
  return answer;
}

CommandAnswer listBreakpoints(ScriptState& s) {
  CommandAnswer answer{.json = {{"breakpoints", Json::array()}}};
  const auto& hits = s.session.breakpointHits();
  for (std::size_t i = 0; i < s.breakpoints.size(); ++i) {
    const auto where = retrograd::describe(*s.analysis, s.breakpoints[i]);
    answer.text += fmt::format("{}{}: {}, met {} time(s){}", i ? "\n" : "", i + 1, where, hits[i],
                               s.breakpoints[i].enabled ? "" : ", disabled");
    answer.json["breakpoints"].push_back({{"where", where}, {"enabled", s.breakpoints[i].enabled}, {"hits", hits[i]}});
  }
  if (s.breakpoints.empty()) answer.text = "no breakpoints";
  return answer;
}

std::size_t breakpointIndex(const ScriptState& s, const Words& words) {
  const auto number = words.number(0, "a breakpoint's number");
  for (std::size_t i = 0; i < s.breakpoints.size(); ++i)
    if (number == static_cast<double>(i + 1)) return i;
  throw Error(ErrorCode::badUse, "there is no such breakpoint");
}

CommandAnswer deleteBreakpoint(ScriptState& s, const Words& words, const Progress&) {
  if (words.all.empty()) s.breakpoints.clear();
  else s.breakpoints.erase(s.breakpoints.begin() + breakpointIndex(s, words));
  s.session.setBreakpoints(s.breakpoints);
  return listBreakpoints(s);
}

ScriptCommand::Handler enableBreakpoint(bool on) {
  return [on](ScriptState& s, const Words& words, const Progress&) {
    s.breakpoints[breakpointIndex(s, words)].enabled = on;
    s.session.setBreakpoints(s.breakpoints);
    return listBreakpoints(s);
  };
}

CommandAnswer history(ScriptState& s, const Words&, const Progress&) {
  const auto kept = s.session.history();
  return {fmt::format("{} of {} bytes kept for stepping back over {} op(s) in {} step(s), none of which runs more than "
                      "{} op(s) again; {} thread(s)",
                      kept.bytes, kept.budget, s.session.position(), kept.entries, kept.reruns, s.session.threads()),
          {{"bytes", kept.bytes},
           {"budget", kept.budget},
           {"entries", kept.entries},
           {"reruns", kept.reruns},
           {"threads", s.session.threads()}}};
}

}  // namespace

std::vector<ScriptCommand> runCommands() {
  return {
      {"continue",
       "run to the next breakpoint or the end (c)",
       [](ScriptState& s, const Words&, const Progress& p) { return s.where(s.session.continueForward(p)); },
       {"c"}},
      {"reverse-continue",
       "the same backwards (rc)",
       [](ScriptState& s, const Words&, const Progress& p) { return s.where(s.session.continueBackward(p)); },
       {"rc"}},
      {"step [N]",
       "run N ops, one at a time, inside ops of the computation and branches too (s, step-into)",
       stepForward,
       {"s", "step-into"}},
      {"reverse-step [N]", "undo N ops (rs, reverse-step-into)", stepBack, {"rs", "reverse-step-into"}},
      {"next [N]",
       "step over: run all ops derived from one op of the computation (n, step-over)",
       past(Step::over),
       {"n", "step-over"}},
      {"reverse-next [N]",
       "the same backwards (rn, reverse-step-over)",
       past(Step::overBack),
       {"rn", "reverse-step-over"}},
      {"step-out [N]",
       "run to the end of the op of the computation that the run is inside; at top level, to the forward/backward "
       "boundary or the end (o)",
       past(Step::out),
       {"o"}},
      {"reverse-step-out [N]", "the same backwards (ro)", past(Step::outBack), {"ro"}},
      {"run-to step N|#OP|border|end", "run until N steps are done, or to before the op, in either direction", runTo},
      {"restart", "go back to the start, with the same seed",
       [](ScriptState& s, const Words&, const Progress&) { return s.session.restart(), s.where(StopReason::start); }},
      {"where", "the current step, the next op, the watches",
       [](ScriptState& s, const Words&, const Progress&) { return s.where(StopReason::step); }},
      {"history", "memory used for stepping back, and its limit", history},
      {"break #OP|VALUE|kind OP|module PATH|value NAME|any [if nan|inf|norm > X|max > X|meta] [after N]",
       "stop at an op, a kind of op, a module or a value, under a condition (b)",
       addBreakpoint,
       {"b"}},
      {"delete [N]", "delete a breakpoint, or all", deleteBreakpoint},
      {"enable N", "switch a breakpoint on again", enableBreakpoint(true)},
      {"disable N", "switch a breakpoint off; its count of hits stays", enableBreakpoint(false)},
      {"breakpoints", "list the breakpoints",
       [](ScriptState& s, const Words&, const Progress&) { return listBreakpoints(s); }},
  };
}

}  // namespace retrograd
