#include "core/checking/rank_check.h"

#include <fmt/format.h>

#include "core/checking/compare.h"
#include "core/checking/tolerance.h"
#include "core/pipeline/rank_stages.h"

namespace retrograd {
namespace {

constexpr const char* onePiece = "the model in one piece";

struct ExpectedResults {
  TensorMap gradients;
  std::map<std::string, TensorData> outputs;  ///< by name for errors: "out.0 of microbatch 1"
};

std::string ofMicrobatch(const std::string& output, std::size_t m) { return fmt::format("out.{} of microbatch {}", output, m); }

ExpectedResults fromMicrobatches(const std::vector<Microbatch>& microbatches, double scale, const Progress& progress) {
  auto run = runUnsplit(microbatches, progress);
  ExpectedResults expected;
  for (const auto& [name, tensor] : run.gradients) expected.gradients.emplace(name, scale == 1 ? tensor : scaledTensor(tensor, scale));
  for (std::size_t m = 0; m < run.outputs.size(); ++m)
    for (std::size_t i = 0; i < run.outputs[m].size(); ++i)
      if (run.outputs[m][i]) expected.outputs.emplace(ofMicrobatch(std::to_string(i), m), *run.outputs[m][i]);
  return expected;
}

ExpectedResults fromBatch(const Analysis& whole) {
  const auto run = runSplit(whole);
  ExpectedResults expected;
  for (const auto& [name, tensor] : run.gradients)
    if (name.starts_with("p.")) expected.gradients.emplace("p." + firstName(whole.computation(), name.substr(2)), tensor);
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    if (run.outputs[i]) expected.outputs.emplace("out." + std::to_string(i), *run.outputs[i]);
  return expected;
}

void compareGradients(Comparison& comparison, const TensorMap& found, const std::set<std::string>& due, const TensorMap& expected) {
  for (const auto& [name, tensor] : found) {
    const auto it = expected.find(name);
    if (it != expected.end()) comparison.add(name, tensor, it->second);
    else if (!isZero(tensor)) comparison.fail(name, "the model in one piece gives none");
  }
  for (const auto& name : due)
    if (const auto it = expected.find(name); it != expected.end() && !found.contains(name) && !isZero(it->second)) comparison.fail(name, "missing");
}

RankVerdict verdictOf(const RankResults& results, const TensorMap& outputs, const ExpectedResults& expected, const Analysis& whole) {
  Comparison gradients, values;
  compareGradients(gradients, results.gradients, results.due, expected.gradients);
  for (const auto& [name, tensor] : outputs)
    if (const auto it = expected.outputs.find(name); it != expected.outputs.end()) values.add(name, tensor, it->second);
  const auto tolerances = tolerancesFor(whole, {}, {});
  const bool outputsAreWorse = !values.failure().empty() || values.error() * tolerances.gradients > gradients.error() * tolerances.outputs;
  const auto& worse = outputsAreWorse && gradients.failure().empty() ? values : gradients;
  return {onePiece, gradients.count() + values.count(), worse.error(), &worse == &values ? tolerances.outputs : tolerances.gradients, worse.worst(), worse.failure()};
}

TensorMap eachOutput(const RankResults& results) {
  TensorMap outputs;
  for (const auto& [output, parts] : results.outputs)
    for (const auto& [m, tensor] : parts) outputs.emplace(ofMicrobatch(output, static_cast<std::size_t>(m)), tensor);
  return outputs;
}

/// A list of losses is none of the batch's outputs.
TensorMap comparableOutputs(const RankResults& results, const std::map<std::string, Merge>& merges) {
  auto outputs = mergedOutputs(results, merges);
  for (const auto& [output, parts] : results.outputs)
    if (isListed(parts.begin()->second.meta, mergeOf(merges, output))) outputs.erase("out." + output);
  return outputs;
}

/// Why stages that give what each microbatch gives do not give what the batch gives.
std::string hintFor(const RankResults& results, const std::vector<Microbatch>& microbatches, const ExpectedResults& expected, const Analysis& whole) {
  const auto count = microbatches.size();
  auto divided = results;
  for (auto& [name, tensor] : divided.gradients) tensor = scaledTensor(tensor, 1.0 / static_cast<double>(count));
  if (results.scale == 1 && count > 1 && verdictOf(divided, {}, expected, whole).good())
    return fmt::format("; over {} it is equal: the loss is a mean over the batch, and --scale-gradients divides so", count);
  return "; it is what the model in one piece gives for each microbatch, summed: the model does not treat the batch's items apart (batch norm does not), or its loss is "
         "neither a sum nor a mean of even parts";
}

}  // namespace

TensorMap mergedOutputs(const RankResults& results, const std::map<std::string, Merge>& merges) {
  TensorMap outputs;
  for (const auto& [output, parts] : results.outputs) {
    std::vector<TensorData> tensors;
    for (const auto& [m, tensor] : parts) tensors.push_back(tensor);
    outputs.emplace("out." + output, mergeOutputs(output, tensors, mergeOf(merges, output)));
  }
  return outputs;
}

RankVerdict checkRank(const RankResults& results, const std::vector<Microbatch>& microbatches, const WholeBatch& batch, const std::map<std::string, Merge>& merges,
                      const Progress& progress) {
  const auto& whole = *microbatches.front().pipeline->whole;
  const auto apart = [&] { return verdictOf(results, eachOutput(results), fromMicrobatches(microbatches, results.scale, progress), whole); };
  if (!batch.analysis) return apart();
  const auto expected = fromBatch(*batch.analysis);
  auto verdict = verdictOf(results, comparableOutputs(results, merges), expected, whole);
  verdict.with = "the model in one piece over the whole batch";
  if (verdict.good() || !apart().good()) return verdict;
  if (verdict.failure.empty()) verdict.failure = fmt::format("{} is off by {:.1e}, beyond {:.1e}", verdict.worst, verdict.error, verdict.tolerance);
  verdict.failure += hintFor(results, microbatches, expected, whole);
  return verdict;
}

}  // namespace retrograd
