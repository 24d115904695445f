#include <map>
#include <memory>

#include "app/cli/help/examples.h"
#include "app/cli/parsing/command.h"
#include "app/cli/parsing/terminal.h"

namespace retrograd::cli {
namespace {

Run setUpPipeline(Parser parser) {
  auto runs = std::make_shared<std::map<Parser, Run>>();
  parser.footer("`retrograd help pipeline NAME` explains one of them. docs/pipeline.md shows how they go together.");
  for (const auto& command : commands("pipeline")) {
    const auto sub = parser.addCommand(command.name, command.description);
    runs->emplace(sub, command.setup(sub));
    addTerminal(sub);
    addExamples(sub, "pipeline " + command.name);
  }
  return [runs, parser](const Progress& progress) { return runs->at(*parser.chosen())(progress); };
}

const Registration registrationPipeline("pipeline", "cut a model into pipeline stages and check them", setUpPipeline);

}  // namespace
}  // namespace retrograd::cli
