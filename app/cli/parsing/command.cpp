#include "app/cli/parsing/command.h"

#include <algorithm>
#include <map>

namespace retrograd::cli {
namespace {

std::vector<Command>& table(const std::string& of) {
  static std::map<std::string, std::vector<Command>> all;
  return all[of];
}

}  // namespace

const std::vector<Command>& commands(const std::string& of) { return table(of); }

Registration::Registration(std::string name, std::string description, Setup setup, const std::string& of) {
  auto& all = table(of);
  const auto place = std::find_if(all.begin(), all.end(), [&](const Command& c) { return name < c.name; });
  all.insert(place, {std::move(name), std::move(description), setup});
}

}  // namespace retrograd::cli
