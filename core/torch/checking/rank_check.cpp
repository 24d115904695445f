#include "core/torch/checking/rank_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/user_choice.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/judge.h"
#include "core/torch/stages/rank_stages.h"

namespace retrograd {
namespace {

struct ExpectedResults {
  TensorMap gradients, buffers;
  std::map<std::string, TensorData> outputs;  ///< by name for errors: "out.0 of microbatch 1"
};

std::string ofMicrobatch(const std::string& output, std::size_t m) {
  return fmt::format("out.{} of microbatch {}", output, m);
}

ExpectedResults fromMicrobatches(const std::vector<Microbatch>& microbatches, double scale, const Progress& progress) {
  auto run = runUnsplit(microbatches, progress);
  ExpectedResults expected{.buffers = std::move(run.buffers)};
  for (const auto& [name, tensor] : run.gradients)
    expected.gradients.emplace(name, scale == 1 ? tensor : scaledTensor(tensor, scale));
  for (std::size_t m = 0; m < run.outputs.size(); ++m)
    for (std::size_t i = 0; i < run.outputs[m].size(); ++i)
      if (run.outputs[m][i]) expected.outputs.emplace(ofMicrobatch(std::to_string(i), m), *run.outputs[m][i]);
  return expected;
}

ExpectedResults fromBatch(const Analysis& whole) {
  const auto run = runSplit(whole);
  ExpectedResults expected;
  for (const auto& [name, tensor] : run.gradients)
    if (name.starts_with("p."))
      expected.gradients.emplace("p." + firstName(whole.computation(), name.substr(2)), tensor);
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    if (run.outputs[i]) expected.outputs.emplace("out." + std::to_string(i), *run.outputs[i]);
  return expected;
}

/// Claims on what a rank has. `runs`: of the whole model, that a gradient adds up.
class RankClaims {
 public:
  RankClaims(Judge& judge, double runs) : judge_(judge), runs_(runs) {}

  void add(const std::string& name, const TensorData& found, const TensorData& expected) {
    const bool gradient = name.starts_with("p.");
    // "out.0 of microbatch 1" errs as out.0 does.
    claims_.push_back(claimOf(Producer::rank, name,
                              identical(found, expected)
                                  ? Measure()
                                  : judge_.compare(gradient ? "grad." + name : name.substr(0, name.find(' ')), found,
                                                   expected, false, gradient ? runs_ : 1)));
  }
  void fail(const std::string& name, std::string reason) {
    claims_.push_back(claimOf(Producer::rank, name, Measure::failed(std::move(reason))));
  }

  Report report() && {
    worstFirst(claims_);
    const auto count = claims_.size();
    return {.claims = std::move(claims_), .judged = count, .due = count, .unit = "tensor"};
  }

 private:
  Judge& judge_;
  double runs_;
  std::vector<Claim> claims_;
};

void compareGradients(RankClaims& claims, const TensorMap& found, const std::set<std::string>& due,
                      const TensorMap& expected) {
  for (const auto& [name, tensor] : found) {
    if (const auto* wanted = findTensor(expected, name)) claims.add(name, tensor, *wanted);
    else if (!isZero(tensor)) claims.fail(name, "the model in one piece gives none");
  }
  for (const auto& name : due)
    if (const auto* wanted = findTensor(expected, name); wanted && !found.contains(name) && !isZero(*wanted))
      claims.fail(name, "missing");
}

Report compareAll(const RankResults& results, const TensorMap& outputs, const ExpectedResults& expected, Judge& judge,
                  double runs) {
  RankClaims claims(judge, runs);
  compareGradients(claims, results.gradients, results.due, expected.gradients);
  for (const auto& [name, tensor] : results.buffers)
    if (const auto* wanted = findTensor(expected.buffers, name)) claims.add("mut." + name, tensor, *wanted);
  for (const auto& [name, tensor] : outputs)
    if (const auto* wanted = findTensor(expected.outputs, name)) claims.add(name, tensor, *wanted);
  return std::move(claims).report();
}

TensorMap eachOutput(const RankResults& results) {
  TensorMap outputs;
  for (const auto& [output, parts] : results.outputs)
    for (const auto& [m, tensor] : parts) outputs.emplace(ofMicrobatch(output, m), tensor);
  return outputs;
}

/// A list of losses is none of the batch's outputs.
TensorMap comparableOutputs(const RankResults& results, const std::map<std::string, Merge>& merges) {
  auto outputs = mergedOutputs(results, merges);
  for (const auto& [output, parts] : results.outputs)
    if (isListed(parts.begin()->second.meta, mergeOf(merges, output))) outputs.erase("out." + output);
  return outputs;
}

bool passes(const Report& report) { return decide(report).verdict == Verdict::pass; }

/// Why stages that give what each microbatch gives do not give what the batch gives.
std::string hintFor(const RankResults& results, const std::vector<Microbatch>& microbatches,
                    const ExpectedResults& expected, Judge& judge) {
  const auto count = microbatches.size();
  auto divided = results;
  for (auto& [name, tensor] : divided.gradients) tensor = scaledTensor(tensor, 1.0 / static_cast<double>(count));
  if (results.scale == 1 && count > 1 && passes(compareAll(divided, {}, expected, judge, 1)))
    return fmt::format("over {} it is equal: the loss is a mean over the batch, and {} divides so", count,
                       nameOf(UserChoice::scaledGradients));
  return "it is what the model in one piece gives for each microbatch, summed: the model does not treat the batch's "
         "items apart (batch norm does not), or "
         "its loss is "
         "neither a sum nor a mean of even parts";
}

/// A rank whose stages hold no parameter and give no output has nothing to be wrong in.
Report named(Report report, std::string with) {
  report.notes.push_back(std::move(with));
  if (!report.claims.empty()) return report;
  report.claims.push_back({.by = Producer::rank,
                           .severity = Severity::holds,
                           .kind = "nothing-due",
                           .sentence = "this rank has no gradient and no output of its own"});
  report.judged = report.due = 1;
  return report;
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

Report checkRank(const RankResults& results, const std::vector<Microbatch>& microbatches, const WholeBatch& batch,
                 const std::map<std::string, Merge>& merges, const Progress& progress) {
  Judge judgeOfOne(microbatches.front().pipeline->whole);
  const auto runs = static_cast<double>(microbatches.size()) * std::max(1.0, std::abs(results.scale));
  const auto apart = [&] {
    return compareAll(results, eachOutput(results), fromMicrobatches(microbatches, results.scale, progress), judgeOfOne,
                      runs);
  };
  if (!batch.analysis) return named(apart(), "compared with the model in one piece");
  const auto expected = fromBatch(*batch.analysis);
  Judge judge(batch.analysis);
  auto report = named(compareAll(results, comparableOutputs(results, merges), expected, judge, 1),
                      "compared with the model in one piece over the whole batch");
  if (!passes(report) && passes(apart()))
    report.claims.front().remedy = hintFor(results, microbatches, expected, judge);
  return report;
}

}  // namespace retrograd
