#include "core/debug/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <sstream>

#include "core/debug/accumulation.h"
#include "core/debug/grad_check.h"
#include "core/debug/memory_timeline.h"
#include "core/debug/nan_walk.h"
#include "core/debug/tensor_text.h"
#include "core/debug/what_if.h"
#include "core/debug/why.h"
#include "core/execution/cuda/statistics.h"
#include "core/trace/printer.h"

namespace retrograd {

using Json = nlohmann::ordered_json;

namespace {

/// A command's words after its name.
struct Words {
  std::vector<std::string> all;
  std::string rest;  ///< the same as they stand in the line

  std::string at(std::size_t i, const char* expected) const {
    if (i >= all.size()) throw Error(ErrorCode::badUse, std::string("expected ") + expected);
    return all[i];
  }
  double number(std::size_t i, const char* expected) const {
    const auto text = at(i, expected);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) throw Error(ErrorCode::badUse, "'" + text + "' is no number");
    return value;
  }
  std::size_t count(std::size_t i) const { return i < all.size() ? static_cast<std::size_t>(std::max(0.0, number(i, "a count"))) : 1; }
};

}  // namespace

struct DebugScript::Impl {
  std::shared_ptr<const Analysis> analysis;
  const Document& document;
  Session session;
  std::vector<Breakpoint> breakpoints;
  std::vector<ValueId> watches;

  Impl(std::shared_ptr<const Analysis> a, SessionOptions options) : analysis(a), document(*a->document), session(std::move(a), options) {}

  // ---- answers

  std::string opText(BoundSymbolId op) const { return op ? printCall(document, op) : "none"; }
  Json opJson(BoundSymbolId op) const {
    if (!op) return nullptr;
    const auto& bound = document.boundSymbol(op);
    const auto position = session.positionOf(op);
    return {{"id", op.index},
            {"op", document.opName(op)},
            {"position", position ? Json(*position) : Json(nullptr)},
            {"module", document.text(bound.module)},
            {"role", name(bound.origin.role)}};
  }
  std::string valueName(ValueId value) const { return value ? document.displayName(value) : "none"; }

  CommandAnswer where(StopReason reason) const {
    CommandAnswer answer;
    const auto next = session.opAt(session.position());
    const bool backward = session.position() >= session.forwardSize();
    answer.json = {{"stopped", name(reason)},
                   {"position", session.position()},
                   {"size", session.size()},
                   {"trace", backward ? "backward" : "forward"},
                   {"next", opJson(next)},
                   {"live_bytes", session.liveBytes()}};
    answer.text = fmt::format("{}: {} {}/{}", name(reason), backward ? "backward" : "forward", session.position(), session.size());
    if (const auto hit = session.hitBreakpoint(); hit && reason == StopReason::breakpoint) {
      answer.json["breakpoint"] = *hit + 1;
      answer.text += fmt::format(", breakpoint {} ({})", *hit + 1, retrograd::describe(*analysis, breakpoints[*hit]));
    }
    if (next) answer.text += fmt::format("\n=> #{} {}", next.index, opText(next));
    for (auto watch : watches) {
      const auto shown = summary(watch);
      answer.text += "\n   " + shown.text;
      answer.json["watches"].push_back(shown.json);
    }
    return answer;
  }

  static Json statisticsJson(const TensorStatistics& s) {
    return {{"elements", s.elements}, {"nan", s.nan}, {"inf", s.inf}, {"zeros", s.zeros}, {"subnormal", s.subnormal}, {"min", s.min},
            {"max", s.max}, {"mean", s.mean}, {"standard_deviation", s.standardDeviation}, {"norm", s.norm}};
  }
  static std::string statisticsText(const TensorStatistics& s) {
    auto text = fmt::format("min {:.6g}, max {:.6g}, mean {:.6g}, std {:.6g}, norm {:.6g}", s.min, s.max, s.mean, s.standardDeviation, s.norm);
    if (s.zeros) text += fmt::format(", {} zeros", s.zeros);
    if (s.nan) text += fmt::format(", {} NaN", s.nan);
    if (s.inf) text += fmt::format(", {} Inf", s.inf);
    if (s.subnormal) text += fmt::format(", {} subnormal", s.subnormal);
    return text;
  }

  CommandAnswer summary(ValueId value) const {
    const auto state = session.state(value);
    CommandAnswer answer;
    answer.json = {{"value", valueName(value)}, {"id", value.index}, {"present", state.present}};
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

  // ---- what words stand for

  ValueId value(const Words& words, std::size_t i = 0) const {
    const auto text = words.at(i, "a value's name");
    if (const auto found = findValue(*analysis, text)) return *found;
    throw Error(ErrorCode::badUse, "there is no value '" + text + "'");
  }
  /// The gradient of a value where the words ask for it: `gradient of W`, or `grad W`.
  ValueId valueOrGradient(const Words& words) const {
    if (words.all.size() >= 2 && words.all[0] == "grad") {
      const auto why = whyNoGradient(*analysis, value(words, 1));
      if (!why.gradient) throw Error(ErrorCode::badUse, words.all[1] + " has no gradient; `why-no-gradient " + words.all[1] + "` tells why");
      return why.gradient;
    }
    return value(words);
  }
  BoundSymbolId op(const Words& words) const { return parseBreakpoint(*analysis, words.at(0, "an op: #12, or a value it makes")).op; }

  // ---- commands

  CommandAnswer step(const Words& words, bool forward) {
    auto reason = StopReason::step;
    for (std::size_t i = 0; i < words.count(0); ++i) {
      reason = forward ? session.step() : session.stepBack();
      if (reason != StopReason::step) break;
    }
    return where(reason);
  }

  /// To where the next computation op begins (or this one began): the subsymbols of one are passed at once.
  CommandAnswer stepOver(const Words& words, bool forward, const Progress& progress) {
    auto position = session.position();
    const auto originAt = [&](std::size_t at) { return OriginLinks::origin(document, session.opAt(at)); };
    const auto role = [&](std::size_t at) { return document.boundSymbol(session.opAt(at)).origin.role == Role::forward; };
    const auto same = [&](std::size_t a, std::size_t b) { return originAt(a) == originAt(b) && role(a) == role(b); };
    for (std::size_t i = 0; i < words.count(0); ++i) {
      if (forward) {
        if (position >= session.size()) break;
        const auto begin = position++;
        while (position < session.size() && same(begin, position)) ++position;
      } else {
        if (position == 0) break;
        const auto end = --position;
        while (position > 0 && same(end, position - 1)) --position;
      }
    }
    return where(session.runTo(position, progress));
  }

  CommandAnswer runTo(const Words& words, const Progress& progress) {
    const auto text = words.at(0, "a position, an op (#12), `border` or `end`");
    auto target = session.size();
    if (text == "border") target = session.forwardSize();
    else if (text != "end") {
      const bool isPosition = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
      target = isPosition ? static_cast<std::size_t>(words.number(0, "")) : session.positionOf(op(words)).value_or(session.size());
    }
    return where(session.runTo(target, progress));
  }

  CommandAnswer addBreakpoint(const Words& words) {
    breakpoints.push_back(parseBreakpoint(*analysis, words.rest));
    session.setBreakpoints(breakpoints);
    return {fmt::format("breakpoint {}: {}", breakpoints.size(), retrograd::describe(*analysis, breakpoints.back())),
            {{"breakpoint", breakpoints.size()}, {"where", retrograd::describe(*analysis, breakpoints.back())}}};
  }

  CommandAnswer deleteBreakpoint(const Words& words) {
    if (words.all.empty()) {
      breakpoints.clear();
    } else {
      const auto i = static_cast<std::size_t>(words.number(0, "a breakpoint's number"));
      if (i < 1 || i > breakpoints.size()) throw Error(ErrorCode::badUse, "there is no such breakpoint");
      breakpoints.erase(breakpoints.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
    session.setBreakpoints(breakpoints);
    return listBreakpoints();
  }

  CommandAnswer listBreakpoints() const {
    CommandAnswer answer;
    answer.json = {{"breakpoints", Json::array()}};
    for (std::size_t i = 0; i < breakpoints.size(); ++i) {
      answer.text += fmt::format("{}{}: {}", i ? "\n" : "", i + 1, retrograd::describe(*analysis, breakpoints[i]));
      answer.json["breakpoints"].push_back(retrograd::describe(*analysis, breakpoints[i]));
    }
    if (breakpoints.empty()) answer.text = "no breakpoints";
    return answer;
  }

  CommandAnswer print(const Words& words) {
    const auto id = valueOrGradient(words);
    auto answer = summary(id);
    const auto state = session.state(id);
    if (!state.present || state.number) return answer;
    const auto contents = session.contents(id);
    answer.text += "\n" + tensorText(contents);
    answer.json["contents"] = tensorJson(contents);
    return answer;
  }

  CommandAnswer set(const Words& words) {
    const auto id = value(words);
    auto contents = session.contents(id);
    contents = filledWith(contents.meta, words.number(1, "a number to fill it with"));
    session.setContents(id, contents);
    return summary(id);
  }

  CommandAnswer watch(const Words& words) {
    if (!words.all.empty()) watches.push_back(valueOrGradient(words));
    CommandAnswer answer;
    answer.json = {{"watches", Json::array()}};
    for (auto watched : watches) {
      const auto shown = summary(watched);
      answer.text += (answer.text.empty() ? "" : "\n") + shown.text;
      answer.json["watches"].push_back(shown.json);
    }
    return answer;
  }

  CommandAnswer list(const Words& words) const {
    const auto around = words.all.empty() ? 5 : words.count(0);
    const auto position = session.position();
    CommandAnswer answer;
    answer.json = {{"ops", Json::array()}};
    for (auto i = position > around ? position - around : 0; i < std::min(session.size(), position + around + 1); ++i) {
      const auto op = session.opAt(i);
      const auto comment = printComment(document, op);
      answer.text += fmt::format("{}{} {:>6} #{} {}{}", answer.text.empty() ? "" : "\n", i == position ? "=>" : "  ", i, op.index, opText(op),
                                 comment.empty() ? "" : "  # " + comment);
      answer.json["ops"].push_back(opJson(op));
    }
    return answer;
  }

  CommandAnswer origin(const Words& words) const {
    const auto asked = words.all.empty() ? session.opAt(session.position()) : op(words);
    if (!asked) throw Error(ErrorCode::badUse, "the run is at its end: name an op");
    const auto from = OriginLinks::origin(document, asked);
    const auto forward = analysis->links.forwardOf(document, asked);
    CommandAnswer answer;
    answer.json = {{"op", opJson(asked)}, {"origin", opJson(from)}, {"forward", opJson(forward)}, {"derived", Json::array()}};
    answer.text = fmt::format("#{} {}\n  from #{} {}", asked.index, opText(asked), from.index, from ? opText(from) : "an input");
    for (auto derived : analysis->links.derived(from)) {
      answer.json["derived"].push_back(opJson(derived));
      answer.text += fmt::format("\n    {} #{} {}", name(document.boundSymbol(derived).origin.role), derived.index, opText(derived));
    }
    return answer;
  }

  CommandAnswer walkNan(const Words& words, const Progress& progress) const {
    const auto record = recordRun(*analysis, {}, progress);
    const auto start = words.all.empty() ? worstValue(record) : valueOrGradient(words);
    if (!start) return {"all values of the run are finite", {{"bad", false}}};
    const auto walk = walkToRoot(*analysis, record, start);
    CommandAnswer answer;
    answer.json = {{"bad", true}, {"path", Json::array()}, {"root", opJson(walk.root)}, {"forward", opJson(walk.forward)},
                   {"nan_from", opJson(walk.nanFrom)}, {"explanation", walk.explanation}};
    for (const auto& way : walk.path) {
      answer.json["path"].push_back({{"value", valueName(way.value)}, {"op", opJson(way.op)}, {"nan", way.statistics.nan}, {"inf", way.statistics.inf}});
      answer.text += fmt::format("{}: {} NaN, {} Inf of {}  {}\n", valueName(way.value), way.statistics.nan, way.statistics.inf, way.statistics.elements,
                                 way.op ? fmt::format("#{} {}", way.op.index, opText(way.op)) : std::string("(comes in so)"));
    }
    if (walk.nanFrom) answer.text += fmt::format("NaN first at #{} {}\n", walk.nanFrom.index, opText(walk.nanFrom));
    answer.text += walk.root ? fmt::format("root: #{} {}", walk.root.index, opText(walk.root)) : "root: the input " + valueName(walk.path.back().value);
    if (!walk.explanation.empty()) answer.text += "\n  " + walk.explanation;
    if (walk.forward && walk.forward != walk.root) answer.text += fmt::format("\n  of the forward: #{} {}", walk.forward.index, opText(walk.forward));
    return answer;
  }

  /// A bad result or gradient where there is one, the last first; else the first bad value of all.
  ValueId worstValue(const RunRecord& record) const {
    const auto& outputs = analysis->joint.outputs;
    for (std::size_t i = outputs.size(); i-- > 0;)
      if (outputs[i] && record.of(outputs[i]).bad()) return outputs[i];
    return firstBadValue(*analysis, record);
  }

  CommandAnswer memory() const {
    const auto timeline = memoryTimeline(*analysis);
    CommandAnswer answer;
    const auto at = std::min(session.position(), timeline.liveBytes.size()) - (session.position() > 0 ? 1 : 0);
    answer.json = {{"peak_bytes", timeline.peakBytes}, {"peak_position", timeline.peakPosition}, {"parameter_bytes", timeline.parameterBytes},
                   {"input_bytes", timeline.inputBytes}, {"live_bytes_now", session.liveBytes()}, {"at_peak", Json::object()}, {"modules_at_peak", Json::object()},
                   {"timeline", Json::array()}};
    answer.text = fmt::format("peak {} bytes after #{} {}; parameters {}, inputs {}; now {}", timeline.peakBytes, session.opAt(timeline.peakPosition).index,
                              opText(session.opAt(timeline.peakPosition)), timeline.parameterBytes, timeline.inputBytes, session.liveBytes());
    if (timeline.liveBytes.empty()) return answer;
    for (std::size_t use = 0; use < memoryUseCount; ++use) {
      const auto label = name(static_cast<MemoryUse>(use));
      answer.json["at_peak"][std::string(label)] = timeline.liveBytes[timeline.peakPosition][use];
      answer.text += fmt::format("\n  {:<10} {:>14} at the peak {:>14} now", label, timeline.liveBytes[timeline.peakPosition][use], session.position() ? timeline.liveBytes[at][use] : 0);
    }
    for (const auto& [module, bytes] : bytesByModule(*analysis, timeline, timeline.peakPosition)) answer.json["modules_at_peak"][module] = bytes;
    for (std::size_t i = 0; i < timeline.liveBytes.size(); ++i) answer.json["timeline"].push_back(timeline.total(i));
    return answer;
  }

  CommandAnswer saved() const {
    CommandAnswer answer;
    answer.json = {{"saved", Json::array()}};
    for (std::size_t i = 0; i < analysis->backward.savedCount; ++i) {
      const auto why = whySaved(*analysis, analysis->backward.inputs[i]);
      answer.json["saved"].push_back({{"value", valueName(why.value)}, {"bytes", why.bytes}, {"storage_bytes", why.storageBytes}, {"readers", why.readers.size()}});
      answer.text += fmt::format("{}{}: {} bytes, read by {}", i ? "\n" : "", valueName(why.value), why.storageBytes, why.readers.size());
    }
    return answer;
  }

  CommandAnswer explainSaved(const Words& words) const {
    const auto why = whySaved(*analysis, value(words));
    CommandAnswer answer;
    answer.json = {{"value", valueName(why.value)}, {"saved", why.saved}, {"bytes", why.bytes}, {"storage_bytes", why.storageBytes}, {"maker", opJson(why.maker)},
                   {"from", why.from}, {"last_read", why.lastRead}, {"readers", Json::array()}};
    answer.text = why.saved ? fmt::format("{} is saved: {} bytes, from {} to {}", valueName(why.value), why.storageBytes, why.from, why.lastRead)
                            : valueName(why.value) + " is not saved";
    for (const auto& reader : why.readers) {
      answer.json["readers"].push_back({{"op", opJson(reader.op)}, {"argument", reader.argument}, {"origin", opJson(reader.origin)}});
      answer.text += fmt::format("\n  read as {} by #{} {}, the derivative of {}", reader.argument, reader.op.index, opText(reader.op),
                                 reader.origin ? document.opName(reader.origin) : "an input");
    }
    const auto& plan = why.recompute;
    if (!plan.impossible.empty()) answer.text += "\n  it cannot be recomputed: " + plan.impossible;
    else if (!plan.ops.empty()) answer.text += fmt::format("\n  recomputing it runs {} op(s) again, about {} bytes moved{}", plan.ops.size(), plan.cost, plan.draws ? ", a draw replayed" : "");
    answer.json["recompute"] = {{"possible", plan.impossible.empty()}, {"reason", plan.impossible}, {"cost", plan.cost}, {"extra_saved_bytes", plan.extraSaved}, {"ops", Json::array()}};
    for (auto again : plan.ops) answer.json["recompute"]["ops"].push_back(opJson(again));
    return answer;
  }

  CommandAnswer explainNoGradient(const Words& words) const {
    const auto why = whyNoGradient(*analysis, value(words));
    CommandAnswer answer;
    answer.json = {{"value", valueName(why.value)}, {"gradient", why.gradient ? Json(valueName(why.gradient)) : Json(nullptr)}, {"stops", Json::array()}};
    if (why.gradient) answer.text = fmt::format("{} has a gradient: {}", valueName(why.value), valueName(why.gradient));
    for (const auto& stop : why.stops) {
      answer.text += (answer.text.empty() ? "" : "\n") + std::string(name(stop.kind)) + ": " + retrograd::describe(document, stop);
      Json path = Json::array();
      for (auto via : stop.path) path.push_back(document.opName(via));
      answer.json["stops"].push_back({{"kind", name(stop.kind)}, {"op", opJson(stop.op)}, {"text", retrograd::describe(document, stop)}, {"path", path}});
    }
    return answer;
  }

  CommandAnswer terms(const Words& words, const Progress& progress) const {
    const auto found = gradientTerms(*analysis, value(words), recordRun(*analysis, {}, progress));
    CommandAnswer answer;
    answer.json = {{"value", valueName(found.value)}, {"gradient", found.gradient ? Json(valueName(found.gradient)) : Json(nullptr)}, {"norm", found.norm}, {"terms", Json::array()}};
    answer.text = found.gradient ? fmt::format("gradient of {}: {}, norm {:.6g}", valueName(found.value), valueName(found.gradient), found.norm)
                                 : valueName(found.value) + " has no gradient";
    for (const auto& term : found.terms) {
      answer.json["terms"].push_back({{"gradient", valueName(term.gradient)}, {"norm", term.norm}, {"op", opJson(term.op)}, {"origin", opJson(term.origin)}});
      answer.text += fmt::format("\n  {:>12.6g}  {} from {}", term.norm, valueName(term.gradient), term.origin ? "#" + std::to_string(term.origin.index) + " " + opText(term.origin) : std::string("outside"));
    }
    return answer;
  }

  /// The computation ops that the words name: one, or all of a module (its first to its last).
  std::vector<BoundSymbolId> rangeOf(const Words& words) const {
    const auto& all = analysis->computation().trace.ops;
    Breakpoint module;
    if (words.at(0, "an op, or `module PATH`") == "module") {
      module.where = Breakpoint::Where::module;
      module.text = words.at(1, "a module's path");
    } else {
      module.where = Breakpoint::Where::op;
      module.op = OriginLinks::origin(document, op(words));
    }
    const auto in = [&](BoundSymbolId op) { return concerns(*analysis, module, op); };
    const auto first = std::find_if(all.begin(), all.end(), in);
    if (first == all.end()) throw Error(ErrorCode::badUse, "the computation holds no such op");
    const auto last = std::find_if(all.rbegin(), all.rend(), in).base();
    return {first, last};
  }

  CommandAnswer checkRange(const Words& words, const Progress& progress) const {
    const auto check = checkGradients(*analysis, rangeOf(words), progress);
    CommandAnswer answer;
    answer.json = {{"passed", check.passed}, {"directions", check.directions}, {"rows", Json::array()}};
    answer.text = check.passed ? "right" : "WRONG";
    const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json("inf"); };
    for (const auto& row : check.rows) {
      answer.json["rows"].push_back({{"input", row.input}, {"finite_differences", number(row.finiteDifferences)}, {"libtorch", number(row.libTorch)}, {"note", row.note}});
      answer.text += fmt::format("\n  {:<24} finite differences {:.2g}, LibTorch {:.2g} {}", row.input, row.finiteDifferences, row.libTorch, row.note);
    }
    return answer;
  }

  CommandAnswer tryPartition(const Words& words, const Progress& progress) const {
    auto partition = analysis->partition;
    for (std::size_t i = 0; i < words.all.size(); ++i) {
      if (words.all[i] == "recompute") partition.recompute.push_back(words.at(++i, "all, a module's path or #OP"));
      else if (words.all[i] == "save") std::erase(partition.recompute, words.at(++i, "what is recomputed now"));
      else if (words.all[i] == "min-cut") partition.kind = PartitionOptions::minCut;
      else if (words.all[i] == "default") partition.kind = PartitionOptions::defaultKind, partition.budget.reset();
      else if (words.all[i] == "budget") partition.budget = static_cast<std::int64_t>(words.number(++i, "bytes"));
      else throw Error(ErrorCode::badUse, "'" + words.all[i] + "' is not understood; expected recompute X, save X, min-cut, default or budget BYTES");
    }
    const auto answer = whatIf(*analysis, partition, session.measures(), progress);
    return {fmt::format("saved {} -> {} bytes, peak {} -> {} bytes, {} op(s) recomputed, {} {:.3g} ms more", answer.before.savedBytes, answer.after.savedBytes,
                        answer.before.peakBytes, answer.after.peakBytes, answer.after.recomputedOps, answer.measured ? "measured" : "estimated", answer.extraSeconds * 1e3),
            {{"before", {{"saved_bytes", answer.before.savedBytes}, {"peak_bytes", answer.before.peakBytes}, {"recomputed_ops", answer.before.recomputedOps}}},
             {"after", {{"saved_bytes", answer.after.savedBytes}, {"peak_bytes", answer.after.peakBytes}, {"recomputed_ops", answer.after.recomputedOps}}},
             {"extra_seconds", answer.extraSeconds},
             {"measured", answer.measured}}};
  }

  CommandAnswer histogram(const Words& words) const {
    const auto id = valueOrGradient(words);
    const auto counts = session.histogram(id, 16);
    CommandAnswer answer = summary(id);
    answer.json["histogram"] = counts;
    const auto most = *std::max_element(counts.begin(), counts.end());
    for (auto count : counts) answer.text += fmt::format("\n{:>10} {}", count, std::string(most ? static_cast<std::size_t>(40 * count / most) : 0, '*'));
    return answer;
  }

  CommandAnswer magnitudes(const Words& words) const {
    const auto id = valueOrGradient(words);
    const auto counts = session.magnitudes(id);
    CommandAnswer answer = summary(id);
    answer.json["magnitudes"] = Json::array();
    const auto most = *std::max_element(counts.begin(), counts.end());
    for (int cell = 0; cell < cuda::magnitudeCells; ++cell) {
      const auto count = counts[static_cast<std::size_t>(cell)];
      if (count == 0) continue;
      const auto text = cuda::magnitudeText(cell);
      answer.json["magnitudes"].push_back({{"cell", text}, {"count", count}});
      answer.text += fmt::format("\n{:>10} {:>10} {}", text, count, std::string(static_cast<std::size_t>(40 * count / most), '*'));
    }
    return answer;
  }
};

namespace {

struct Command {
  const char* name;
  const char* usage;
  const char* help;
};

constexpr Command table[] = {
    {"continue", "continue", "run to the next breakpoint or the end (c)"},
    {"reverse-continue", "reverse-continue", "the same backwards (rc)"},
    {"step", "step [N]", "run N ops (s)"},
    {"reverse-step", "reverse-step [N]", "undo N ops (rs)"},
    {"next", "next [N]", "step over: all ops of a computation op at once (n)"},
    {"reverse-next", "reverse-next [N]", "the same backwards (rn)"},
    {"run-to", "run-to POSITION|#OP|border|end", "run to there, in either direction"},
    {"restart", "restart", "to the start, with the same seed"},
    {"where", "where", "position, next op, watches"},
    {"list", "list [N]", "the ops around"},
    {"origin", "origin [#OP]", "where an op comes from, and all that came of it"},
    {"break", "break #OP|VALUE|kind OP|module PATH|value NAME|any [if nan|inf|norm > X|max > X|meta] [after N]", "stop there (b)"},
    {"delete", "delete [N]", "a breakpoint, or all"},
    {"breakpoints", "breakpoints", "list them"},
    {"print", "print [grad] VALUE", "contents and statistics (p)"},
    {"histogram", "histogram [grad] VALUE", "how its elements are distributed"},
    {"magnitudes", "magnitudes [grad] VALUE", "its elements by power of two; what lower precision would lose"},
    {"watch", "watch [[grad] VALUE]", "show it at each stop"},
    {"set", "set VALUE NUMBER", "fill it with a number and go on from there"},
    {"walk-nan", "walk-nan [[grad] VALUE]", "from a bad value back to the op where it came to be"},
    {"memory", "memory", "live bytes by use, the peak, the timeline"},
    {"saved", "saved", "what is saved for backward"},
    {"why-saved", "why-saved VALUE", "who reads it, its bytes, what recomputing it would cost"},
    {"why-no-gradient", "why-no-gradient VALUE", "what cuts its gradient off"},
    {"terms", "terms VALUE", "the gradients summed into a value's, with their norms"},
    {"check-gradient", "check-gradient #OP|VALUE|module PATH", "against finite differences and LibTorch, in double precision"},
    {"what-if", "what-if [recompute X] [save X] [min-cut] [budget BYTES] [default]", "saved bytes, peak and time of another partition"},
    {"help", "help", "this list"},
};

}  // namespace

DebugScript::DebugScript(std::shared_ptr<const Analysis> analysis, SessionOptions options) : impl_(std::make_unique<Impl>(std::move(analysis), options)) {}
DebugScript::~DebugScript() = default;
Session& DebugScript::session() { return impl_->session; }

std::vector<std::pair<std::string, std::string>> DebugScript::commands() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& command : table) all.emplace_back(command.usage, command.help);
  return all;
}

CommandAnswer DebugScript::run(const std::string& line, const Progress& progress) {
  using Handler = std::function<CommandAnswer(Impl&, const Words&, const Progress&)>;
  static const std::map<std::string, Handler, std::less<>> handlers{
      {"continue", [](Impl& i, const Words&, const Progress& p) { return i.where(i.session.continueForward(p)); }},
      {"reverse-continue", [](Impl& i, const Words&, const Progress& p) { return i.where(i.session.continueBackward(p)); }},
      {"step", [](Impl& i, const Words& w, const Progress&) { return i.step(w, true); }},
      {"reverse-step", [](Impl& i, const Words& w, const Progress&) { return i.step(w, false); }},
      {"next", [](Impl& i, const Words& w, const Progress& p) { return i.stepOver(w, true, p); }},
      {"reverse-next", [](Impl& i, const Words& w, const Progress& p) { return i.stepOver(w, false, p); }},
      {"run-to", [](Impl& i, const Words& w, const Progress& p) { return i.runTo(w, p); }},
      {"restart", [](Impl& i, const Words&, const Progress&) { return i.session.restart(), i.where(StopReason::start); }},
      {"where", [](Impl& i, const Words&, const Progress&) { return i.where(StopReason::step); }},
      {"list", [](Impl& i, const Words& w, const Progress&) { return i.list(w); }},
      {"origin", [](Impl& i, const Words& w, const Progress&) { return i.origin(w); }},
      {"break", [](Impl& i, const Words& w, const Progress&) { return i.addBreakpoint(w); }},
      {"delete", [](Impl& i, const Words& w, const Progress&) { return i.deleteBreakpoint(w); }},
      {"breakpoints", [](Impl& i, const Words&, const Progress&) { return i.listBreakpoints(); }},
      {"print", [](Impl& i, const Words& w, const Progress&) { return i.print(w); }},
      {"histogram", [](Impl& i, const Words& w, const Progress&) { return i.histogram(w); }},
      {"magnitudes", [](Impl& i, const Words& w, const Progress&) { return i.magnitudes(w); }},
      {"watch", [](Impl& i, const Words& w, const Progress&) { return i.watch(w); }},
      {"set", [](Impl& i, const Words& w, const Progress&) { return i.set(w); }},
      {"walk-nan", [](Impl& i, const Words& w, const Progress& p) { return i.walkNan(w, p); }},
      {"memory", [](Impl& i, const Words&, const Progress&) { return i.memory(); }},
      {"saved", [](Impl& i, const Words&, const Progress&) { return i.saved(); }},
      {"why-saved", [](Impl& i, const Words& w, const Progress&) { return i.explainSaved(w); }},
      {"why-no-gradient", [](Impl& i, const Words& w, const Progress&) { return i.explainNoGradient(w); }},
      {"terms", [](Impl& i, const Words& w, const Progress& p) { return i.terms(w, p); }},
      {"check-gradient", [](Impl& i, const Words& w, const Progress& p) { return i.checkRange(w, p); }},
      {"what-if", [](Impl& i, const Words& w, const Progress& p) { return i.tryPartition(w, p); }},
      {"help", [](Impl&, const Words&, const Progress&) {
         CommandAnswer answer;
         for (const auto& command : table) {
           answer.text += fmt::format("{}{}\n    {}", answer.text.empty() ? "" : "\n", command.usage, command.help);
           answer.json[command.name] = command.help;
         }
         return answer;
       }},
  };
  static const std::map<std::string, std::string, std::less<>> shortNames{{"c", "continue"}, {"rc", "reverse-continue"}, {"s", "step"},  {"rs", "reverse-step"},
                                                                          {"n", "next"},     {"rn", "reverse-next"},     {"b", "break"}, {"p", "print"}};
  std::istringstream stream(line);
  std::string command;
  if (!(stream >> command) || command.starts_with("#")) return {};
  if (const auto full = shortNames.find(command); full != shortNames.end()) command = full->second;
  const auto handler = handlers.find(command);
  if (handler == handlers.end()) throw Error(ErrorCode::badUse, "there is no command '" + command + "'; `help` lists them");
  Words words;
  std::getline(stream >> std::ws, words.rest);
  std::istringstream rest(words.rest);
  for (std::string word; rest >> word;) words.all.push_back(word);
  try {
    auto answer = handler->second(*impl_, words, progress);
    Json json = {{"command", line}};
    json.update(answer.json);
    answer.json = std::move(json);
    return answer;
  } catch (const Error& e) {
    throw Error(e.code(), e.message(), e.place().empty() ? "'" + line + "'" : e.place());
  }
}

}  // namespace retrograd
