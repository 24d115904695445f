#include "app/cli/check/check_ranks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/report.h"
#include "core/formats/recording/recording.h"
#include "core/torch/together/ranks_report.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {

int checkRanks(const std::string& folder, const RecordingChecks& checks, const Progress& progress) {
  std::vector<std::shared_ptr<const Analysis>> ranks;
  for (const auto& path : ranksIn(folder)) ranks.push_back(open(path, {}, progress));
  const auto single = openAgainst(checks, progress);
  const auto report = reportOfRanks(folder, ranks, single, progress);
  const auto decision = decide(report, checks.strict);
  if (checks.format == "json") fmt::print("{}\n", dumpJson(toJson(report, decision), 2));
  else printReport(report, decision);
  return exitCode(decision.verdict);
}

}  // namespace retrograd::cli
