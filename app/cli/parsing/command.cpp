#include "app/cli/parsing/command.h"

#include <algorithm>

namespace retrograd::cli {
namespace {

std::vector<Command>& table() {
  static std::vector<Command> all;
  return all;
}

}  // namespace

const std::vector<Command>& commands() { return table(); }

Registration::Registration(std::string name, std::string description, Setup setup) {
  auto& all = table();
  const auto place = std::find_if(all.begin(), all.end(), [&](const Command& c) { return name < c.name; });
  all.insert(place, {std::move(name), std::move(description), setup});
}

}  // namespace retrograd::cli
