#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "app/cli/help/mistakes.h"
#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "app/cli/parsing/program.h"
#include "app/cli/parsing/terminal.h"
#include "app/cli/run/prompt.h"
#include "core/base/byte_size.h"
#include "core/questions/why.h"
#include "core/torch/script/script.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct DebugArguments {
  std::string file, script, format = "text";
  std::vector<std::string> commands;
  bool keepGoing = false;
  SessionOptions session;
  InputOptions input;
};

/// How a script ends, by what its commands answered.
struct Outcome {
  bool foundBad = false;  ///< one looked for a fault and found it
  int exitCode() const { return foundBad ? checkFailed : allWell; }
};

/// One command; false where it failed and the script should end.
bool runLine(DebugScript& script, const DebugArguments& arguments, const std::string& line, Outcome& outcome,
             const Progress& progress) {
  try {
    const auto answer = script.run(line, progress);
    outcome.foundBad |= answer.bad;
    clearProgress();
    if (arguments.format == "json") {
      if (!answer.json.is_null()) fmt::print("{}\n", dumpJson(answer.json));
    } else if (!answer.text.empty()) {
      fmt::print("{}\n", answer.text);
    }
    return true;
  } catch (const Error& e) {
    clearProgress();
    if (e.code() == ErrorCode::cancelled) throw;
    if (arguments.format == "json")
      fmt::print("{}\n", dumpJson(nlohmann::ordered_json{{"command", line}, {"error", e.what()}}));
    else printError(e.what());
    return arguments.keepGoing;
  }
}

bool isEnd(const std::string& line) { return line == "quit" || line == "exit" || line == "q"; }

/// Modules, values and kinds of ops of the model, for completion.
std::vector<std::string> namesOf(const Analysis& analysis) {
  const auto& document = *analysis.document;
  auto names = valueNames(analysis);
  for (const auto* word : {"kind", "module", "value", "any", "if", "nan", "inf", "norm", "max", "meta", "after",
                           "border", "end", "grad", "both", "all", "recompute", "min-cut", "budget"})
    names.emplace_back(word);
  std::set<std::string> others;
  for (auto op : analysis.joint.ops) {
    const auto& bound = document.boundSymbol(op);
    const std::string name = document.symbol(bound.symbol).name;
    if (const auto first = name.find('.'), last = name.rfind('.'); first < last)
      others.insert(name.substr(first + 1, last - first - 1));
    const std::string module(document.text(bound.module));
    for (auto end = module.find('.'); end != std::string::npos; end = module.find('.', end + 1))
      others.insert(module.substr(0, end));
    if (!module.empty()) others.insert(module);
  }
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

PromptWords wordsFor(const Analysis& analysis) {
  auto usages = std::make_shared<std::map<std::string, std::string>>();
  PromptWords words;
  for (const auto& [usage, help] : DebugScript::commands()) {
    const auto name = usage.substr(0, usage.find(' '));
    usages->emplace(name, fmt::format("{}\n    {}", usage, help));
    words.commands.push_back(name);
  }
  words.commands.emplace_back("quit");
  words.others = [names = namesOf(analysis)](const std::string&) { return names; };
  words.help = [usages](const std::string& command) {
    const auto found = usages->find(command);
    return found == usages->end() ? std::string() : found->second;
  };
  return words;
}

/// One command at the prompt. Ctrl+C stops it and leads back to the prompt.
void runTyped(DebugScript& script, const DebugArguments& arguments, const std::string& line, const Progress& progress) {
  const CommandStop stop;
  Outcome ignored;
  try {
    runLine(script, arguments, line, ignored,
            Progress(stop.token(), [&](std::string_view stage, double fraction) { progress.at(stage, fraction); }));
  } catch (const Error& e) {
    if (progress.stopRequested() || e.code() != ErrorCode::cancelled) throw;
    fmt::print("stopped\n");
  }
}

/// At a terminal: a mistake does not end the session.
int talk(DebugScript& script, const Analysis& analysis, DebugArguments arguments, const Progress& progress) {
  arguments.keepGoing = true;
  Prompt prompt(wordsFor(analysis));
  if (!terminal().quiet)
    fmt::print("{} ops forward, {} backward. `help` lists the commands, Tab completes and explains, `quit` ends.\n",
               analysis.forward.ops.size(), analysis.backward.ops.size());
  Outcome ignored;
  runLine(script, arguments, "where", ignored, progress);
  flushOutput();
  for (auto line = prompt.line(); line && !isEnd(*line); line = prompt.line()) {
    runTyped(script, arguments, *line, progress);
    flushOutput();
    progress.check();
  }
  progress.check();  // the prompt ends without a line where the program is to end
  return allWell;
}

int runAll(const DebugArguments& arguments, const Progress& progress) {
  requireToRun(arguments.input.device);
  letReaderLeave();
  const auto analysis = open(arguments.file, arguments.input, progress);
  if (reportProblems(analysis->problems)) return badInputOrUse;
  auto session = arguments.session;
  session.threads = arguments.input.threads;
  DebugScript script(analysis, session);
  Outcome outcome;
  for (const auto& command : arguments.commands) {
    if (!runLine(script, arguments, command, outcome, progress)) return badInputOrUse;
    flushOutput();
    progress.check();  // a run that was stopped says where it is
  }
  const bool fromInput = (arguments.script.empty() && arguments.commands.empty()) || arguments.script == "-";
  if (arguments.script.empty() && fromInput && arguments.format == "text" && Prompt::isUseful())
    return talk(script, *analysis, arguments, progress);
  if (arguments.script.empty() && !fromInput) return outcome.exitCode();
  std::ifstream file;
  if (!fromInput) {
    requireFile(arguments.script);
    file.open(arguments.script);
    if (!file) throw Error(ErrorCode::io, fmt::format("cannot be read: {}", std::strerror(errno)), arguments.script);
  }
  std::istream& lines = fromInput ? std::cin : file;
  for (std::string line; std::getline(lines, line);) {
    if (isEnd(line)) break;
    if (!runLine(script, arguments, line, outcome, progress)) return badInputOrUse;
    flushOutput();
    progress.check();
  }
  if (lines.bad())
    throw Error(ErrorCode::io, "could not be read to its end", fromInput ? "standard input" : arguments.script);
  return outcome.exitCode();
}

Run setUpDebug(Parser parser) {
  auto arguments = std::make_shared<DebugArguments>();
  parser
      .add("file", arguments->file,
           "a model (.pt2, TorchScript, printed traces), a recorded step or a .retrograd session")
      .required();
  parser.add("--script", arguments->script, "a file with one command a line (-: standard input)");
  parser.add("-c,--command", arguments->commands, "run this command; repeatable").repeatable();
  parser.flag("--keep-going", arguments->keepGoing, "continue after a command that failed");
  parser
      .addSize("--history", "memory for stepping back, such as 500M; with less, some ops run again",
               [arguments](std::int64_t bytes) { arguments->session.historyBytes = bytes; })
      .showDefault(bytesText(arguments->session.historyBytes));
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  parser.footer([] {
    if (!program()) throw NeedsProgram();
    std::string commands = "Commands:\n";
    for (const auto& [usage, help] : program()->debuggerCommands())
      commands += fmt::format("  {}\n      {}\n", usage, help);
    return commands;
  });
  return [arguments](const Progress& progress) { return runAll(*arguments, progress); };
}

const Registration registrationDebug(
    "debug", "run in both directions with breakpoints, and ask why: at a prompt, or by a script", setUpDebug);

}  // namespace
}  // namespace retrograd::cli
