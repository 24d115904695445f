// Questions about ops, values and lines.
#include <algorithm>
#include <charconv>

#include "core/questions/why.h"
#include "core/torch/serve/open_files.h"
#include "core/trace/filter/filter.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

using Json = Method::Json;
using Files = std::shared_ptr<OpenFiles>;

constexpr std::size_t usualCount = 40;

const Method::Parameter fileParameter{"file", "integer", "number that `open` gave; absent: the file asked about last"};

const Trace& traceNamed(const Analysis& analysis, const std::string& word) {
  for (const auto* trace : {&analysis.joint, &analysis.forward, &analysis.backward})
    if (analysis.derived() && word == name(trace->kind)) return *trace;
  if (word == "computation" || (!analysis.derived() && word == "joint")) return analysis.computation().trace;
  badUse(
      "trace is to be joint, forward, backward or computation; the others are there only where a backward was "
      "derived");
}

Json listingAnswer(const Analysis& analysis, const Json& arguments) {
  const auto& trace = traceNamed(analysis, textIn(arguments, "trace", "joint"));
  FilterRun run(*analysis.document, Filter::parse(textIn(arguments, "filter")), &analysis.backward);
  const auto ops = run.select(trace);
  const auto from = countIn(arguments, "from", 0), count = countIn(arguments, "count", usualCount);
  Json answer{{"trace", name(trace.kind)}, {"ops", ops.size()}, {"from", from}, {"listing", Json::array()}};
  for (auto i = from; i < ops.size() && i - from < count; ++i) answer["listing"].push_back(opAnswer(analysis, ops[i]));
  return answer;
}

struct Line {
  std::string file;
  int number = 0;
};

/// "train.py:12", also as "train.py:12 in step".
Line lineIn(const std::string& text) {
  const auto colon = text.rfind(':');
  Line line{text.substr(0, colon), 0};
  if (colon != std::string::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), line.number);
  if (line.number == 0 || line.file.empty()) badUse("line is to be FILE:NUMBER, such as train.py:12");
  return line;
}

bool isOf(const SourceFrame& frame, const Line& line) {
  if (frame.line != line.number || !frame.file.ends_with(line.file)) return false;
  return frame.file.size() == line.file.size() || frame.file[frame.file.size() - line.file.size() - 1] == '/';
}

/// The ops of a line of Python, those of lines that it calls included.
Json lineAnswer(const Analysis& analysis, const Line& line) {
  const auto& trace = analysis.derived() ? analysis.joint : analysis.computation().trace;
  Json answer{{"line", line.file + ":" + std::to_string(line.number)}, {"code", nullptr}, {"ops", Json::array()}};
  for (const auto op : trace.ops) {
    const auto& stack = sourceOf(*analysis.document, op);
    const auto found = std::ranges::find_if(stack, [&](const SourceFrame& frame) { return isOf(frame, line); });
    if (found == stack.end()) continue;
    if (answer["code"].is_null() && !found->code.empty()) answer["code"] = found->code;
    answer["ops"].push_back(opAnswer(analysis, op));
  }
  if (answer["ops"].empty()) badUse("no op was called in this line", line.file + ":" + std::to_string(line.number));
  return answer;
}

/// The value that words name; none where there is none, and the debugger's command says so.
ValueId valueNamed(const Analysis& analysis, const std::string& name, bool gradient) {
  const auto found = findValue(analysis, name);
  return !found ? ValueId() : gradient ? whyNoGradient(analysis, *found).gradient : *found;
}

/// Where a run makes a value; the end for what is there all the time.
std::size_t makerOf(const Session& session, ValueId value) {
  for (std::size_t i = 0; i < session.size(); ++i)
    if (std::ranges::find(session.analysis().document->outputs(session.opAt(i)), value) !=
        session.analysis().document->outputs(session.opAt(i)).end())
      return i;
  return session.size();
}

/// The run goes to where the value was made, so that its memory holds it.
Json valueAnswer(OpenFiles& files, const Json& arguments, const Progress& progress) {
  auto& file = files.at(arguments);
  auto& session = files.script(file).session();
  const auto name = textIn(arguments, "value"), slice = textIn(arguments, "slice");
  const bool gradient = arguments.value("gradient", false);
  const auto value = valueNamed(*file.analysis, name, gradient);
  const auto maker = value ? makerOf(session, value) : session.size();
  if (value && !session.state(value).present) session.runTo(std::min(maker + 1, session.size()), progress);
  auto answer = files.command(
      file, (gradient ? "print grad " : "print ") + name + (slice.empty() ? "" : "[" + slice + "]"), progress);
  if (maker < session.size()) answer["made_by"] = opAnswer(*file.analysis, session.opAt(maker));
  return answer;
}

}  // namespace

std::vector<Method> opMethods(const Files& files) {
  return {
      {"listing",
       "Ops in the order in which they run, with module, line of Python, role and the forward op that a backward op "
       "comes from. Filter in words: `role:gradient module:h.3 op:mul not op:view`, or a plain word.",
       {{"trace", "string", "joint (default), forward, backward or computation"},
        {"filter", "string", "which ops; absent: all"},
        {"from", "integer", "of those that pass, from 0"},
        {"count", "integer", "how many (40)"},
        fileParameter},
       [files](const Json& arguments, const Progress&) {
         return listingAnswer(*files->analysis(files->at(arguments)), arguments);
       }},
      {"source_line",
       "The ops of a line of Python, forward and backward, and the line's text.",
       {{"line", "string", "FILE:NUMBER, such as train.py:12", true}, fileParameter},
       [files](const Json& arguments, const Progress&) {
         return lineAnswer(*files->analysis(files->at(arguments)), lineIn(textIn(arguments, "line")));
       }},
      {"origin",
       "The forward op that an op of the backward comes from, its line of Python, and all ops derived from it.",
       {{"op", "string", "#12, or the name of a value that it makes", true}, fileParameter},
       [files](const Json& arguments, const Progress& progress) {
         auto& file = files->at(arguments);
         auto answer = files->command(file, "origin " + textIn(arguments, "op"), progress);
         for (const char* word : {"op", "origin", "forward"})
           if (answer[word].is_object())
             answer[word] = opAnswer(*file.analysis, BoundSymbolId(answer[word]["id"].get<std::int64_t>()));
         return answer;
       }},
      {"values",
       "Statistics and elements of a value (t12, loss, fc.weight) as it was made: minimum, maximum, norm, NaN, where "
       "these are. Runs up to there.",
       {{"value", "string", "name of a value or parameter", true},
        {"gradient", "boolean", "its gradient instead"},
        {"slice", "string", "as in Python, without brackets: 0, :4"},
        fileParameter},
       [files](const Json& arguments, const Progress& progress) { return valueAnswer(*files, arguments, progress); }},
  };
}

}  // namespace retrograd
