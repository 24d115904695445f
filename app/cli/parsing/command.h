#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/cli/parsing/parser.h"
#include "core/base/progress.h"

namespace retrograd::cli {

/// Exit codes of the program.
inline constexpr int allWell = 0;
inline constexpr int checkFailed = 1;
inline constexpr int badInputOrUse = 2;
inline constexpr int cancelled = 130;  ///< as shells report a program that Ctrl+C ended

/// What a subcommand does once its options are read; returns the exit code. Throws Error.
using Run = std::function<int(const Progress&)>;
/// Adds a subcommand's options to its parser and returns what to run. Options live in what the closure holds.
using Setup = Run (*)(Parser);

struct Command {
  std::string name, description;
  Setup setup;
};

/// The subcommands of the program, or of its subcommand `of` ("pipeline"), by name.
const std::vector<Command>& commands(const std::string& of = {});

/// A file-scope Registration in a subcommand's file is all it takes to add one, to the program or to `of`.
struct Registration {
  Registration(std::string name, std::string description, Setup setup, const std::string& of = {});
};

}  // namespace retrograd::cli
