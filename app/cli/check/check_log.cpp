#include "app/cli/check/check_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/cli/parsing/report.h"
#include "core/formats/checkpoint/given_weights.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/torch/opinion/second_opinion.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {

int checkLog(const std::string& path, const GivenData& data, const std::string& reference, TensorMap filled,
             std::uint64_t seed, const std::string& format, const Progress& progress) {
  SecondOpinionRequest request;
  request.compile = data.compile;
  request.rank = data.rank;
  request.seed = seed;
  request.useWhatBinds = data.partial;
  if (!data.weights.empty()) request.weights = readWeights(data, progress);
  if (!data.batch.empty()) request.batch = readBatchFile(data.batch, progress).tensors;
  request.filled = std::move(filled);
  if (!reference.empty()) request.reference = readSafetensors(reference).tensors;
  auto report = secondOpinion(jobs::openJobLog(path, progress), request, progress).report;
  report.subject = path;
  const auto decision = decide(report);
  if (format == "json") fmt::print("{}\n", dumpJson(toJson(report, decision), 2));
  else printReport(report, decision);
  return exitCode(decision.verdict);
}

}  // namespace retrograd::cli
