#include "app/cli/help/mistakes.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <vector>

#include "app/cli/parsing/terminal.h"
#include "core/base/near_names.h"

namespace retrograd::cli {
namespace {

/// The subcommand that was being read when the mistake came.
const CLI::App& deepest(const CLI::App& program) {
  const auto* app = &program;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

std::string path(const CLI::App& app) {
  std::string text;
  for (const auto* one = &app; one->get_parent(); one = one->get_parent())
    text.insert(0, one->get_name() + (text.empty() ? "" : " "));
  return text;
}

std::vector<std::string> optionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    if (!option->get_group().empty())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// "--format: xml not in {text,json}" with the choices in words and the near one.
std::string wrongChoice(const std::string& message) {
  const auto open = message.find(" not in {"), close = message.rfind('}');
  const auto colon = message.find(": ");
  if (open == std::string::npos || close == std::string::npos || colon == std::string::npos || colon > open)
    return message;
  std::vector<std::string> choices;
  std::string list;
  for (auto at = open + 9; at <= close;) {
    const auto end = std::min(message.find(',', at), close);
    choices.push_back(message.substr(at, end - at));
    list += (list.empty() ? "" : ", ") + choices.back();
    at = end + 1;
  }
  const auto given = message.substr(colon + 2, open - colon - 2);
  return fmt::format("{}: '{}' is none of {}{}", message.substr(0, colon), given, list, didYouMean(given, choices));
}

std::string withoutBrackets(std::string text) {
  for (auto at = text.find("[Option Group"); at != std::string::npos; at = text.find("[Option Group")) text.erase(at);
  return text;
}

}  // namespace

std::vector<std::string> subcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({}))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

std::string meantSubcommand(const CLI::App& app, const std::string& word) {
  const auto near = didYouMean(word, subcommandNames(app));
  const auto name = path(app);
  return near +
         fmt::format("{} `retrograd help{}{}` lists them", near.empty() ? ";" : "", name.empty() ? "" : " ", name);
}

std::string explain(const CLI::App& program, const CLI::ParseError& error) {
  const auto& app = deepest(program);
  const auto name = path(app);
  const auto place = name.empty() ? std::string() : name + ": ";
  const auto left = app.remaining(true);
  if (!left.empty() && left.front().starts_with('-')) {
    const auto option = left.front().substr(0, left.front().find('='));
    const auto near = didYouMean(option, optionNames(app));
    const auto help = fmt::format("; `retrograd help{}{}` lists them", name.empty() ? "" : " ", name);
    return fmt::format("{}there is no option {}{}", place, option, near.empty() ? help : near);
  }
  if (!left.empty() && !app.get_subcommands({}).empty())
    return fmt::format("{}there is no subcommand '{}'{}", place, left.front(), meantSubcommand(app, left.front()));
  if (!left.empty())
    return fmt::format("{}'{}' is one argument too many; `retrograd help {}` lists what it takes", place, left.front(),
                       name);
  if (dynamic_cast<const CLI::RequiredError*>(&error) && !app.get_subcommands({}).empty())
    return fmt::format("{}a subcommand is missing; `retrograd help {}` lists them", place, name);
  return place + wrongChoice(withoutBrackets(error.what()));
}

void printError(std::string_view message) {
  clearProgress();
  std::fprintf(stderr, "%s %.*s\n", styled(stderr, Style::bad, "retrograd:").c_str(), static_cast<int>(message.size()),
               message.data());
}

}  // namespace retrograd::cli
