#include "core/torch/script/script.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "core/base/near_names.h"
#include "core/torch/script/script_state.h"

namespace retrograd {

namespace {

const ScriptCommand& commandNamed(const std::string& name);

CommandAnswer help(ScriptState&, const Words& words, const Progress&) {
  CommandAnswer answer;
  if (!words.all.empty()) {
    const auto& command = commandNamed(words.all[0]);
    answer.json[command.name()] = command.help;
    answer.text = fmt::format("{}\n    {}", command.usage, command.help);
    return answer;
  }
  for (const auto& [usage, what] : DebugScript::commands()) {
    answer.text += fmt::format("{}{}\n    {}", answer.text.empty() ? "" : "\n", usage, what);
    answer.json[usage.substr(0, usage.find(' '))] = what;
  }
  return answer;
}

const std::vector<ScriptCommand>& allCommands() {
  static const auto all = [] {
    std::vector<ScriptCommand> commands;
    for (auto&& group :
         {runCommands(), questionCommands(), memoryCommands(), valueCommands(), checkCommands(), noteCommands()})
      commands.insert(commands.end(), group.begin(), group.end());
    commands.push_back({"help [COMMAND]", "explain a command, or list all of them (h)", help, {"h"}});
    return commands;
  }();
  return all;
}

const ScriptCommand& commandNamed(const std::string& name) {
  static const auto byName = [] {
    std::map<std::string, const ScriptCommand*> names;
    for (const auto& command : allCommands()) {
      names[command.name()] = &command;
      for (const auto& other : command.otherNames) names[other] = &command;
    }
    return names;
  }();
  const auto found = byName.find(name);
  if (found == byName.end()) {
    std::vector<std::string> known;
    for (const auto& one : byName) known.push_back(one.first);
    throw Error(ErrorCode::badUse, "there is no command '" + name + "'" + didYouMean(name, known) +
                                       (didYouMean(name, known).empty() ? ";" : "") + " `help` lists the commands");
  }
  return *found->second;
}

}  // namespace

DebugScript::DebugScript(const std::shared_ptr<const Analysis>& analysis, SessionOptions options)
    : state_(std::make_unique<ScriptState>(analysis, options)) {}
DebugScript::~DebugScript() = default;
Session& DebugScript::session() { return state_->session; }

std::vector<std::pair<std::string, std::string>> DebugScript::commands() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& command : allCommands()) all.emplace_back(command.usage, command.help);
  return all;
}

CommandAnswer DebugScript::run(const std::string& line, const Progress& progress) {
  std::istringstream stream(line);
  std::string name;
  if (!(stream >> name) || name.starts_with("#")) return {};
  const auto& command = commandNamed(name);
  Words words;
  std::getline(stream >> std::ws, words.rest);
  std::istringstream rest(words.rest);
  for (std::string word; rest >> word;) words.all.push_back(word);
  try {
    auto answer = command.run(*state_, words, progress);
    nlohmann::ordered_json json = {{"command", line}};
    json.update(answer.json);
    answer.json = std::move(json);
    return answer;
  } catch (const Error& e) {
    throw Error(e.code(), e.message(), e.place().empty() ? "'" + line + "'" : e.place());
  }
}

}  // namespace retrograd
