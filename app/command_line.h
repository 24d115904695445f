#pragma once
// Reading the command line, and turning errors into messages and exit codes: what the program and the front before it
// (front.cpp) have in common.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/parsing/command.h"
#include "core/derivation/registry.h"

namespace retrograd {

/// What a command line asks for.
struct CommandLine {
  cli::Parser parser;                         ///< that has read it
  std::optional<cli::Parser> subcommand;      ///< absent: the window
  const cli::Run* run;                        ///< of the subcommand
  const std::vector<std::string>& files;      ///< to open in the window
  std::shared_ptr<const RuleRegistry> rules;  ///< of the libraries that are named
};

/// Calls `body`; an error becomes a message and an exit code here, and nowhere else.
int reported(const std::function<int()>& body);

/// Reads the command line and hands it to `go`; what is wrong with it, and --help, are answered here. Returns the exit
/// code, standard output flushed: output that was lost, or that rests on a file that changed meanwhile, is a failure
/// whatever came before.
int runCommandLine(int argc, char** argv, const std::function<int(const CommandLine&)>& go);

}  // namespace retrograd
