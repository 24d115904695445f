#include "app/cli/pipeline/pipeline.h"

#include "app/cli/help/examples.h"
#include "app/cli/parsing/terminal.h"

#include <algorithm>
#include <map>
#include <memory>

namespace retrograd::cli {
namespace {

std::vector<Command>& table() {
  static std::vector<Command> all;
  return all;
}

Run setUpPipeline(Parser parser) {
  auto runs = std::make_shared<std::map<Parser, Run>>();
  parser.footer("`retrograd help pipeline NAME` explains one of them. docs/pipeline.md shows how they go together.");
  for (const auto& command : pipelineCommands()) {
    const auto sub = parser.addCommand(command.name, command.description);
    runs->emplace(sub, command.setup(sub));
    addTerminal(sub);
    addExamples(sub, "pipeline " + command.name);
  }
  return [runs, parser](const Progress& progress) { return runs->at(*parser.chosen())(progress); };
}

const Registration registrationPipeline("pipeline", "cut a model into pipeline stages and check them", setUpPipeline);

}  // namespace

const std::vector<Command>& pipelineCommands() { return table(); }

PipelineRegistration::PipelineRegistration(std::string name, std::string description, Setup setup) {
  auto& all = table();
  const auto place = std::find_if(all.begin(), all.end(), [&](const Command& c) { return name < c.name; });
  all.insert(place, {std::move(name), std::move(description), setup});
}

}  // namespace retrograd::cli
