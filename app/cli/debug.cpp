#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

#include "app/cli/command.h"
#include "app/cli/program.h"
#include "app/cli/options.h"
#include "app/cli/output.h"
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

/// One command; false where it failed and the script should end.
bool runLine(DebugScript& script, const DebugArguments& arguments, const std::string& line, const Progress& progress) {
  try {
    const auto answer = script.run(line, progress);
    if (arguments.format == "json") {
      if (!answer.json.is_null()) fmt::print("{}\n", dumpJson(answer.json));
    } else if (!answer.text.empty()) {
      fmt::print("{}\n", answer.text);
    }
    return true;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::cancelled) throw;
    if (arguments.format == "json") fmt::print("{}\n", dumpJson(nlohmann::ordered_json{{"command", line}, {"error", e.what()}}));
    else fmt::print(stderr, "retrograd: {}\n", e.what());
    return arguments.keepGoing;
  }
}

int runAll(const DebugArguments& arguments, const Progress& progress) {
  requireToRun(arguments.input.device);
  const auto analysis = open(arguments.file, arguments.input, progress);
  if (reportProblems(analysis->problems)) return badInputOrUse;
  auto session = arguments.session;
  session.threads = arguments.input.threads;
  DebugScript script(analysis, session);
  for (const auto& command : arguments.commands)
    if (!runLine(script, arguments, command, progress)) return badInputOrUse;
  const bool fromInput = arguments.script.empty() && arguments.commands.empty();
  if (arguments.script.empty() && !fromInput) return allWell;
  std::ifstream file;
  if (!fromInput) {
    requireFile(arguments.script);
    file.open(arguments.script);
    if (!file) throw Error(ErrorCode::io, fmt::format("cannot be read: {}", std::strerror(errno)), arguments.script);
  }
  std::istream& lines = fromInput ? std::cin : file;
  for (std::string line; std::getline(lines, line);) {
    if (line == "quit" || line == "exit") break;
    if (!runLine(script, arguments, line, progress)) return badInputOrUse;
    flushOutput();
  }
  if (lines.bad()) throw Error(ErrorCode::io, "could not be read to its end", fromInput ? "standard input" : arguments.script);
  return allWell;
}

Run setup(CLI::App& app) {
  auto arguments = std::make_shared<DebugArguments>();
  app.add_option("file", arguments->file, "a .pt2 archive or a .retrograd session")->required();
  app.add_option("--script", arguments->script, "file with one command a line (default: standard input)");
  app.add_option("-c,--command", arguments->commands, "a command; repeatable")->allow_extra_args(false);
  app.add_flag("--keep-going", arguments->keepGoing, "go on after a command that failed");
  app.add_option("--history", arguments->session.historyBytes, "bytes to keep for stepping back; with less, more runs again")
      ->check(CLI::NonNegativeNumber)->capture_default_str();
  addFormat(app, arguments->format);
  arguments->input.addTo(app);
  app.footer([] {
    if (!program()) throw NeedsProgram();
    std::string commands = "Commands:\n";
    for (const auto& [usage, help] : program()->debuggerCommands()) commands += "  " + usage + "\n      " + help + "\n";
    return commands;
  });
  return [arguments](const Progress& progress) { return runAll(*arguments, progress); };
}

const Registration registration("debug", "run in both directions with breakpoints, and ask why: a script of the debugger's commands", setup);

}  // namespace
}  // namespace retrograd::cli
