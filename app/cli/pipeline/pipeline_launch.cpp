#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "app/cli/parsing/command.h"
#include "core/ranks/launch.h"

namespace retrograd::cli {
namespace {

struct LaunchArguments {
  int ranks = 1;
  double grace = 10;
  std::vector<std::string> command;
};

int runPipelineLaunch(const LaunchArguments& arguments, const Progress& progress) {
  LaunchOptions options;
  options.ranks = arguments.ranks;
  options.grace = std::chrono::milliseconds(std::llround(arguments.grace * 1000));
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string()};
  options.command.insert(options.command.end(), arguments.command.begin(), arguments.command.end());
  const auto result = launchRanks(options, progress);
  if (result.failedRank >= 0) fmt::print(stderr, "error: {}\n", result.failure);
  return result.exitCode;
}

Run setUpPipelineLaunch(Parser parser) {
  auto arguments = std::make_shared<LaunchArguments>();
  parser.add("--ranks", arguments->ranks, "processes to run on this machine").required().range(1, 1024);
  parser.add("--grace", arguments->grace, "seconds for the others to end by themselves, when one has failed")
      .range(0.0, 3600.0)
      .showDefault();
  parser.add("command", arguments->command, "behind --: the subcommand and its options, for each rank").required();
  return [arguments](const Progress& progress) { return runPipelineLaunch(*arguments, progress); };
}

const Registration registrationPipelineLaunch("launch",
                                              "run a subcommand once for each rank on this machine, as torchrun does",
                                              setUpPipelineLaunch, "pipeline");

}  // namespace
}  // namespace retrograd::cli
