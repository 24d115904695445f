#pragma once
#include <vector>

#include "app/cli/parsing/command.h"

namespace retrograd::cli {

/// A file-scope PipelineRegistration adds a subcommand of `retrograd pipeline`, as Registration adds one of the
/// program.
struct PipelineRegistration {
  PipelineRegistration(std::string name, std::string description, Setup setup);
};

/// All subcommands of `pipeline`, by name.
const std::vector<Command>& pipelineCommands();

}  // namespace retrograd::cli
