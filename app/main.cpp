#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "app/cli/version.h"
#include "app/interrupt.h"
#include "app/window.h"
#include "core/debug/probe.h"

namespace retrograd {
namespace {

int exitCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::badInput:
    case ErrorCode::badUse:
      return cli::badInputOrUse;
    case ErrorCode::cancelled:
      return cli::cancelled;
    default:
      return cli::checkFailed;
  }
}

/// The one place where errors become messages and exit codes.
template <class Body>
int guarded(Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    fmt::print(stderr, "retrograd: {}\n", error.what());
    return exitCode(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "retrograd: {}\n", messageOf(error));
    return cli::checkFailed;
  }
}

int openWindow(int& argc, char** argv, const std::vector<std::string>& files, std::shared_ptr<const RuleRegistry> rules) {
  for (const auto& file : files)
    if (!std::filesystem::exists(file))
      throw Error(ErrorCode::badUse, "no such file, and no subcommand of that name (see retrograd help)", file);
  return showWindow(argc, argv, files, std::move(rules));
}

int start(int argc, char** argv) {
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
  return guarded([&] {  // reading the command line loads libraries, which may fail
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? cli::allWell : cli::badInputOrUse;
    }
    const auto chosen = app.get_subcommands();
    if (chosen.empty()) return openWindow(argc, argv, files, rules);
    const Interrupt interrupt;
    return runs.at(chosen.front())(Progress(interrupt.token(), {}));
  });
}

}  // namespace
}  // namespace retrograd

int main(int argc, char** argv) {
  retrograd::setProbeCommand({"/proc/self/exe", "probe-torchscript"});
  return retrograd::start(argc, argv);
}
