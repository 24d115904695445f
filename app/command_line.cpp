#include "app/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <new>

#include "app/cli/help/examples.h"
#include "app/cli/help/mistakes.h"
#include "app/cli/help/version.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "app/cli/parsing/terminal.h"
#include "core/base/out_of_memory.h"
#include "core/formats/files/deferred_check.h"
#include "core/formats/files/mapping_watch.h"

namespace retrograd {
namespace {

int exitCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::badInput:
    case ErrorCode::badUse:
    case ErrorCode::io: return cli::badInputOrUse;
    case ErrorCode::cancelled: return cli::cancelled;
    default: return cli::checkFailed;
  }
}

}  // namespace

int reported(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    cli::printError(error.what());
    return exitCode(error.code());
  } catch (const OutOfMemory& error) {
    cli::printError(error.what());
    return cli::badInputOrUse;
  } catch (const std::bad_alloc&) {
    cli::printError("not enough memory");
    return cli::badInputOrUse;
  } catch (const std::exception& error) {
    if (std::ferror(stdout)) return cli::badInputOrUse;  // {fmt} throws where it cannot print; finished() says so
    cli::printError(messageOf(error));
    return cli::checkFailed;
  }
}

namespace {

/// The exit code when all is done: output that was lost, or that rests on a file that changed meanwhile, is a failure
/// whatever came before.
int finished(int code) {
  const auto checked = [&](auto check) {
    try {
      check();
    } catch (const Error& error) {
      cli::printError(error.what());
      code = exitCode(error.code());
    }
  };
  checked(cli::flushOutput);
  if (code == cli::allWell || code == cli::checkFailed) {
    checked(requireAllUnchanged);
    checked(requireNoDamage);
  }
  return code;
}

/// Anything else than a subcommand should be a file for the window.
void requireFiles(const CLI::App& app, const std::vector<std::string>& files) {
  for (const auto& file : files)
    if (!std::filesystem::exists(file))
      badUse("there is no such file and no such subcommand" + cli::meantSubcommand(app, file), file);
}

int readAndGo(int argc, char** argv, const std::function<int(const CommandLine&)>& go) {
  CLI::App app{
      "Retrograd: a debugger for autograd. Opens models (.pt2, TorchScript, printed traces) and sessions in its "
      "window. The subcommands need no display."};
  app.name("retrograd");
  app.footer("Exit codes: 0 success, 1 a check failed, 2 bad input or use, 130 after Ctrl+C.");
  app.set_version_flag("--version", cli::versionText, "print the versions of Retrograd and LibTorch");
  std::vector<std::string> files;
  app.add_option("files", files, "files to open in the window");
  app.require_subcommand(0, 1);
  const cli::Parser parser(app);
  std::map<cli::Parser, cli::Run> runs;
  for (const auto& command : cli::commands()) {
    const cli::Parser sub(*app.add_subcommand(command.name, command.description));
    runs[sub] = command.setup(sub);
    if (!sub.hasCommands()) cli::addTerminal(sub);
    cli::addExamples(sub, command.name);
  }
  std::shared_ptr<const RuleRegistry> rules;
  cli::addLibraries(parser, rules);
  return reported([&] {  // reading the command line loads libraries, which may fail
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error), cli::allWell;
      badUse(cli::explain(app, error));
    }
    const auto subcommand = parser.chosen();
    if (!subcommand) requireFiles(app, files);
    return go({parser, subcommand, subcommand ? &runs.at(*subcommand) : nullptr, files, rules});
  });
}

}  // namespace

int runCommandLine(int argc, char** argv, const std::function<int(const CommandLine&)>& go) {
  cli::prepareStandardStreams();
  // Describing the command line takes memory too, so that it can fail.
  return finished(reported([&] { return readAndGo(argc, argv, go); }));
}

}  // namespace retrograd
