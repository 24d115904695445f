#include "app/command_line.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <new>

#include "app/cli/options.h"
#include "app/cli/output.h"
#include "app/cli/version.h"
#include "core/base/out_of_memory.h"
#include "core/formats/files/deferred_check.h"
#include "core/formats/files/mapping_watch.h"

namespace retrograd {
namespace {

int exitCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::badInput:
    case ErrorCode::badUse:
    case ErrorCode::io:
      return cli::badInputOrUse;
    case ErrorCode::cancelled:
      return cli::cancelled;
    default:
      return cli::checkFailed;
  }
}

}  // namespace

int reported(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::fprintf(stderr, "retrograd: %s\n", error.what());
    return exitCode(error.code());
  } catch (const OutOfMemory& error) {
    std::fprintf(stderr, "retrograd: %s\n", error.what());
    return cli::badInputOrUse;
  } catch (const std::bad_alloc&) {
    std::fputs("retrograd: not enough memory\n", stderr);
    return cli::badInputOrUse;
  } catch (const std::exception& error) {
    if (std::ferror(stdout)) return cli::badInputOrUse;  // {fmt} throws where it cannot print; finished() says so
    std::fprintf(stderr, "retrograd: %s\n", messageOf(error).c_str());
    return cli::checkFailed;
  }
}

namespace {

/// The exit code when all is done: output that was lost, or that rests on a file that changed meanwhile, is a failure whatever came before.
int finished(int code) {
  const auto checked = [&](auto check) {
    try {
      check();
    } catch (const Error& error) {
      std::fprintf(stderr, "retrograd: %s\n", error.what());
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

/// What is no subcommand should be a file for the window.
void requireFiles(const std::vector<std::string>& files) {
  for (const auto& file : files)
    if (!std::filesystem::exists(file)) throw Error(ErrorCode::badUse, "no such file, and no subcommand of that name (see retrograd help)", file);
}

int readAndGo(int argc, char** argv, const std::function<int(const CommandLine&)>& go) {
  CLI::App app{"Retrograd: a debugger for autograd. Opens .pt2 files and .retrograd sessions in its window; the subcommands need no display."};
  app.name("retrograd");
  app.footer("Exit codes: 0 all well, 1 a check failed, 2 bad input or use.");
  app.set_version_flag("--version", cli::versionText, "print the version and that of LibTorch");
  std::vector<std::string> files;
  app.add_option("files", files, "files to open in the window");
  app.require_subcommand(0, 1);
  std::map<const CLI::App*, cli::Run> runs;
  for (const auto& command : cli::commands()) {
    auto* sub = app.add_subcommand(command.name, command.description);
    runs[sub] = command.setup(*sub);
  }
  std::shared_ptr<const RuleRegistry> rules;
  cli::addLibraries(app, rules);
  return reported([&] {  // reading the command line loads libraries, which may fail
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? cli::allWell : cli::badInputOrUse;
    }
    const auto chosen = app.get_subcommands();
    if (chosen.empty()) requireFiles(files);
    const auto* subcommand = chosen.empty() ? nullptr : chosen.front();
    return go({app, subcommand, subcommand ? &runs.at(subcommand) : nullptr, files, rules});
  });
}

}  // namespace

int runCommandLine(int argc, char** argv, const std::function<int(const CommandLine&)>& go) {
  cli::prepareStandardStreams();
  // Describing the command line takes memory too, so that it can fail.
  return finished(reported([&] { return readAndGo(argc, argv, go); }));
}

}  // namespace retrograd
