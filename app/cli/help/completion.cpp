// Completions for shells. Options without fixed choices are completed as file names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/help/command_text.h"
#include "core/base/error.h"

namespace retrograd::cli {
namespace {

/// Within single quotes of a shell.
std::string quoted(const std::string& text, const char* quote) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(quote) : std::string(1, c);
  return out + "'";
}

std::vector<std::string> flags(const OptionText& option) {
  std::vector<std::string> all;
  for (const auto& name : option.shortNames) all.push_back("-" + name);
  for (const auto& name : option.longNames) all.push_back("--" + name);
  return all;
}

std::vector<std::string> flags(const CommandText& command) {
  std::vector<std::string> all;
  for (const auto& option : command.options)
    for (auto& flag : flags(option)) all.push_back(std::move(flag));
  return all;
}

bool isTop(const CommandText& command) { return command.name.find(' ') == std::string::npos; }

/// Of the program's own subcommands, without those below them.
std::vector<std::string> topNames(const std::vector<CommandText>& commands) {
  std::vector<std::string> all;
  for (const auto& command : commands)
    if (isTop(command)) all.push_back(command.name);
  return all;
}

std::string bashCase(const CommandText& command, const std::string& commandName) {
  std::string text;
  for (const auto& option : command.options) {
    if (!option.takesValue) continue;
    std::string pattern;
    for (const auto& flag : flags(option))
      pattern += fmt::format("{}'{} {}'", pattern.empty() ? "" : "|", commandName, flag);
    const auto choices = option.choices.empty() ? std::string()
                                                : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))",
                                                              fmt::join(option.choices, " "));
    text += fmt::format("    {}) {}{}return ;;\n", pattern, choices, choices.empty() ? "" : "; ");
  }
  return text;
}

std::string bash(const CommandText& program, const std::vector<CommandText>& commands) {
  std::string values = bashCase(program, ""), words, known, groups, helpGroups;
  for (const auto& command : commands) {
    values += bashCase(command, command.name);
    words += fmt::format("    '{}') words='{}{}{}' ;;\n", command.name, fmt::join(command.commands, " "),
                         command.commands.empty() ? "" : " ", fmt::join(flags(command), " "));
    known += fmt::format("{}'{}'", known.empty() ? "" : "|", command.name);
    if (command.commands.empty()) continue;
    groups += fmt::format(" || $command == {}", command.name);
    helpGroups += fmt::format("    'help {}') words='{}' ;;\n", command.name, fmt::join(command.commands, " "));
  }
  return fmt::format(R"(# bash completion for retrograd
_retrograd() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{command:+$command }}${{COMP_WORDS[i]}}" in
      {0}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command $previous" in
{1}  esac
  case $command in
    '') words='{2} {3}' ;;
    help) words='{2} completion saving man bash zsh fish' ;;
{4}  esac
  case "$command $previous" in
{6}  esac
  if [[ $current == -* || -z $command || $command == help{5} ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}}
complete -o bashdefault -o default -F _retrograd retrograd
)",
                     known, values, fmt::join(topNames(commands), " "), fmt::join(flags(program), " "), words, groups,
                     helpGroups);
}

/// An argument of zsh's _arguments: '(-o --out)'{-o,--out}'[what]:value:_files'.
std::string zshOption(const OptionText& option) {
  std::string description;
  for (const char c : option.description)
    description +=
        std::string_view("[]:\\").find(c) == std::string_view::npos ? std::string(1, c) : std::string("\\") + c;
  std::string action;
  if (option.takesValue)
    action = option.choices.empty() ? ":value:_files" : fmt::format(":value:({})", fmt::join(option.choices, " "));
  const auto all = flags(option);
  const auto rest = quoted(fmt::format("[{}]{}", description, action), "'\\''");
  if (all.size() == 1) return fmt::format("{}{}{}", option.repeats ? "'*'" : "", all[0], rest);
  return fmt::format("{}{{{}}}{}", option.repeats ? "'*'" : quoted(fmt::format("({})", fmt::join(all, " ")), ""),
                     fmt::join(all, ","), rest);
}

std::string zshArguments(const CommandText& command, const std::string& indent) {
  std::string text = indent + "_arguments \\\n";
  for (const auto& option : command.options) text += indent + "  " + zshOption(option) + " \\\n";
  return text + indent + "  '*:file:_files' ;;\n";
}

/// A command with subcommands of its own: their list, then the options of the one that was chosen.
std::string zshGroup(const CommandText& group, const std::vector<CommandText>& commands) {
  std::string list, cases;
  for (const auto& command : commands) {
    if (!command.name.starts_with(group.name + " ")) continue;
    const auto name = command.name.substr(group.name.size() + 1);
    list += fmt::format(" {}", quoted(name + ":" + command.description, "'\\''"));
    cases += fmt::format("            {})\n              shift words; (( CURRENT-- ))\n{}", name,
                         zshArguments(command, "              "));
  }
  return fmt::format(
      "          if (( CURRENT == 2 )); then\n            local -a nested=({} )\n            _describe -t commands "
      "command nested\n          else case "
      "$words[2] in\n{}          esac; fi ;;\n",
      list, cases);
}

std::string zsh(const CommandText& program, const std::vector<CommandText>& commands) {
  std::string list, cases, own;
  for (const auto& option : program.options) own += "    " + zshOption(option) + " \\\n";
  for (const auto& command : commands) {
    if (!isTop(command)) continue;
    list += fmt::format("    {}\n", quoted(command.name + ":" + command.description, "'\\''"));
    cases += fmt::format("        {})\n{}", command.name,
                         command.commands.empty() ? zshArguments(command, "          ") : zshGroup(command, commands));
  }
  return fmt::format(R"(#compdef retrograd
_retrograd() {{
  local context state state_descr line
  local -A opt_args
  local -a commands
  commands=(
{})
  _arguments -C \
{}    '1: :->command' \
    '*:: :->arguments'
  case $state in
    command)
      _describe -t commands command commands
      _files ;;
    arguments)
      case $words[1] in
{}        *) _files ;;
      esac ;;
  esac
}}
_retrograd "$@"
)",
                     list, own, cases);
}

std::string fishOption(const OptionText& option, const std::string& condition) {
  std::string text = "complete -c retrograd -n " + condition;
  for (const auto& name : option.shortNames) text += " -s " + name;
  for (const auto& name : option.longNames) text += " -l " + name;
  if (option.takesValue)
    text += option.choices.empty() ? " -r" : fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
  return text + " -d " + quoted(option.description, "\\'") + "\n";
}

std::string fish(const CommandText& program, const std::vector<CommandText>& commands) {
  std::string text = "# fish completion for retrograd\n", groups;
  for (const auto& command : commands)
    if (!command.commands.empty()) groups += " " + command.name;
  for (const auto& option : program.options) text += fishOption(option, "__fish_use_subcommand");
  for (const auto& command : commands) {
    const auto space = command.name.find(' ');
    auto condition = "__fish_seen_subcommand_from " + command.name.substr(0, space);
    auto offer = std::string("__fish_use_subcommand");
    if (space != std::string::npos) {
      offer = condition;
      condition += "; and __fish_seen_subcommand_from " + command.name.substr(space + 1);
    } else if (command.commands.empty() && !groups.empty()) {
      condition += "; and not __fish_seen_subcommand_from" + groups;
    }
    text += fmt::format("complete -c retrograd -n {} -a {} -d {}\n", quoted(offer, ""),
                        command.name.substr(space == std::string::npos ? 0 : space + 1),
                        quoted(command.description, "\\'"));
    for (const auto& option : command.options) text += fishOption(option, quoted(condition, ""));
  }
  return text;
}

}  // namespace

std::string shellCompletion(const CLI::App& app, const std::string& shell) {
  const auto program = describeCommand(app);
  const auto commands = describeCommands(app);
  if (shell == "bash") return bash(program, commands);
  if (shell == "zsh") return zsh(program, commands);
  if (shell == "fish") return fish(program, commands);
  badUse("there are completions for bash, zsh and fish", shell.empty() ? "completion" : shell);
}

}  // namespace retrograd::cli
