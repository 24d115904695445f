#include "app/cli/help/command_text.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/cli/help/mistakes.h"

namespace retrograd::cli {
namespace {

/// "TEXT:{a,b}" as the parser writes it: the type, and the choices in braces.
void splitType(OptionText& option, const std::string& text) {
  const auto open = text.find('{'), close = text.rfind('}');
  option.valueType = text.substr(0, std::min(open, text.find(':')));
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  for (auto at = open + 1; at <= close;) {
    const auto end = std::min(text.find(',', at), close);
    option.choices.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

OptionText describeOption(const CLI::Option& option) {
  OptionText text;
  text.shortNames = option.get_snames();
  text.longNames = option.get_lnames();
  if (option.get_positional()) text.positional = option.get_name(true);
  text.description = option.get_description();
  text.takesValue = option.get_items_expected_max() > 0;
  text.repeats = option.get_items_expected_max() >= CLI::detail::expected_max_vector_size;
  text.required = option.get_required();
  splitType(text, option.get_type_name());
  return text;
}

}  // namespace

std::string OptionText::names() const {
  std::string text;
  for (const auto& name : shortNames) text += (text.empty() ? "-" : ", -") + name;
  for (const auto& name : longNames) text += (text.empty() ? "--" : ", --") + name;
  return text;
}

CommandText describeCommand(const CLI::App& app) {
  CommandText text{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const auto* option : app.get_options({})) {
    if (option->get_group().empty()) continue;
    auto described = describeOption(*option);
    (option->get_positional() ? text.positionals : text.options).push_back(std::move(described));
  }
  text.commands = subcommandNames(app);
  return text;
}

std::vector<CommandText> describeCommands(const CLI::App& program) {
  std::vector<CommandText> commands;
  for (const auto* command : program.get_subcommands({})) {
    if (command->get_group().empty()) continue;
    commands.push_back(describeCommand(*command));
    for (auto& nested : describeCommands(*command)) {
      nested.name = command->get_name() + " " + nested.name;
      commands.push_back(std::move(nested));
    }
  }
  return commands;
}

}  // namespace retrograd::cli
