#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace retrograd::cli {

/// An option or positional argument of a subcommand as help, completions and the manual page describe it: read off the
/// command line parser, so that none of them can say anything else.
struct OptionText {
  std::vector<std::string> shortNames, longNames;  ///< "o", "out"; a positional has neither
  std::string positional;                          ///< its name
  std::string description, valueType;              ///< "TEXT", "INT"
  std::vector<std::string> choices;                ///< the only values, where these are known
  bool takesValue = false, repeats = false, required = false;

  /// "-o, --out"
  std::string names() const;
};

struct CommandText {
  std::string name, description, footer;  ///< the name with those before it: "pipeline split"
  std::vector<OptionText> options, positionals;
  std::vector<std::string> commands;  ///< names of its own subcommands: "split"
};

/// The options of the program itself (its name in `name`), and those of its subcommands by name, each with its own
/// behind it; hidden ones are left out.
CommandText describeCommand(const CLI::App& app);
std::vector<CommandText> describeCommands(const CLI::App& program);

/// Completions for "bash", "zsh" or "fish". Throws Error(badUse) for another shell.
std::string shellCompletion(const CLI::App& program, const std::string& shell);

/// The manual page retrograd(1) in man's macros.
std::string manualPage(const CLI::App& program);

}  // namespace retrograd::cli
