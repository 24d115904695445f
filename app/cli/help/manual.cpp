// The manual page, from the same descriptions as --help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/help/command_text.h"

namespace retrograd::cli {
namespace {

/// Text for roff: no line begins with a request, a hyphen stays one that can be copied.
std::string roff(const std::string& text) {
  std::string out;
  bool atStart = true;
  for (const char c : text) {
    if (atStart && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
    atStart = c == '\n';
  }
  return out;
}

std::string optionEntry(const OptionText& option) {
  auto title =
      option.positional.empty() ? "\\fB" + roff(option.names()) + "\\fR" : "\\fI" + roff(option.positional) + "\\fR";
  if (option.takesValue && option.positional.empty())
    title += option.choices.empty() ? " \\fI" + roff(option.valueType) + "\\fR"
                                    : roff(fmt::format(" {}", fmt::join(option.choices, "|")));
  return fmt::format(".TP\n{}\n{}\n", title, roff(option.description));
}

std::string synopsis(const CommandText& command) {
  std::string text = "\\fBretrograd " + roff(command.name) + "\\fR";
  for (const auto& argument : command.positionals) {
    const auto name = "\\fI" + roff(argument.positional) + "\\fR" + (argument.repeats ? "..." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  return text + (command.options.empty() ? "" : " [\\fIoptions\\fR]");
}

}  // namespace

std::string manualPage(const CLI::App& app) {
  const auto program = describeCommand(app);
  std::string text = ".TH RETROGRAD 1 \"\" \"retrograd " RETROGRAD_VERSION
                     "\" \"User Commands\"\n"
                     ".SH NAME\nretrograd \\- a debugger for autograd\n"
                     ".SH SYNOPSIS\n.B retrograd\n[\\fIoptions\\fR] [\\fIfile\\fR...]\n.br\n.B "
                     "retrograd\n\\fIcommand\\fR [\\fIoptions\\fR] [\\fIfile\\fR...]\n"
                     ".SH DESCRIPTION\n" +
                     roff(program.description) + "\n.SH OPTIONS\n";
  for (const auto& option : program.options) text += optionEntry(option);
  text += ".SH COMMANDS\n";
  for (const auto& command : describeCommands(app)) {
    text += fmt::format(".SS \"{}\"\n{}.\n.PP\n{}\n", roff(command.name), roff(command.description), synopsis(command));
    for (const auto& argument : command.positionals) text += optionEntry(argument);
    for (const auto& option : command.options) text += optionEntry(option);
    if (!command.footer.empty())
      text += ".PP\n.nf\n" + roff(command.footer) + (command.footer.ends_with('\n') ? "" : "\n") + ".fi\n";
  }
  return text + ".SH EXIT STATUS\n0 on success, 1 if a check failed, 2 for bad input or use, 130 after Ctrl+C.\n";
}

}  // namespace retrograd::cli
