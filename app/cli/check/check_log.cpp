#include "app/cli/check/check_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/enum_array.h"
#include "core/formats/checkpoint/given_weights.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/torch/opinion/second_opinion.h"

namespace retrograd::cli {
namespace {

using Verdict = SecondOpinion::Verdict;

constexpr const char* drawnHealth = "; the inputs were drawn: --weights and --batch give those of the job";

/// NaN of values that were drawn says nothing of the job, and hides what else may differ.
int exitCode(const SecondOpinion& opinion, bool drawsAll) {
  if (opinion.passes()) return allWell;
  if (opinion.verdict == Verdict::agrees) return drawsAll ? badInputOrUse : checkFailed;
  return opinion.verdict == Verdict::differs ? checkFailed : badInputOrUse;
}

std::string word(Verdict verdict) {
  if (verdict == Verdict::agrees) return "agrees";
  return verdict == Verdict::differs ? "differs" : "not possible";
}

std::string textOf(const TensorVerdict& verdict) {
  return verdict.failure.empty() ? fmt::format("off by {:.3g}, tolerance {:.3g}, largest element {:.3g}",
                                               verdict.deviation, verdict.tolerance, verdict.scale)
                                 : verdict.failure;
}

const TensorVerdict* worstOf(const std::vector<TensorVerdict>& verdicts) {
  const auto worst = std::ranges::max_element(verdicts, {}, &TensorVerdict::ratio);
  return worst == verdicts.end() ? nullptr : &*worst;
}

void printReference(std::string_view what, const std::vector<TensorVerdict>& verdicts) {
  const auto* worst = worstOf(verdicts);
  if (worst == nullptr) return;
  const auto off = std::count_if(verdicts.begin(), verdicts.end(), [](const auto& verdict) { return !verdict.good(); });
  fmt::print("  {}: {} tensors compared, {} differ; furthest: {}: {}\n", what, verdicts.size(), off, worst->name,
             textOf(*worst));
}

std::string word(SecondOpinion::Parting parting) {
  static constexpr EnumArray<SecondOpinion::Parting, const char*, 5> words{"", "job", "derived", "reference", "all"};
  return words[parting];
}

void printText(const SecondOpinion& opinion, bool drawsAll) {
  fmt::print("{}  compile {}: the job's backward against the one derived from its forward\n", word(opinion.verdict),
             opinion.compile);
  if (!opinion.health.sound()) fmt::print("  {}{}\n", healthText(opinion.health), drawsAll ? drawnHealth : "");
  if (!opinion.reason.empty()) fmt::print("  {}\n", opinion.reason);
  for (const auto& finding : opinion.findings) {
    fmt::print("  {}{}{}\n", finding.gradient, finding.gradient.empty() ? "" : ": ", finding.what);
    if (!finding.op.empty()) fmt::print("    from {}, line {} of the backward graph\n", finding.op, finding.line);
    if (!finding.source.empty()) fmt::print("    {}\n", finding.source);
  }
  if (opinion.compared + opinion.none > 0)
    fmt::print("  {} gradients compared by value, {} are None in both\n", opinion.compared, opinion.none);
  if (const auto* worst = worstOf(opinion.gradients); worst != nullptr)
    fmt::print("  furthest: {}: {}\n", worst->name, textOf(*worst));
  printReference("reference", opinion.jobReferenced);
  if (opinion.parting != SecondOpinion::Parting::none) {
    printReference("the derived backward against the reference", opinion.referenced);
    fmt::print("  {}\n", sentenceOf(opinion.parting));
  }
  for (const auto& note : opinion.notes) fmt::print("  note: {}\n", note);
  if (drawsAll && opinion.drawn > 0)  // otherwise each is named above
    fmt::print(
        "  note: {} input{} drawn from the descriptors in the log; --weights and --batch give those of the job\n",
        opinion.drawn, opinion.drawn == 1 ? " was" : "s were");
  if (!opinion.findings.empty() && !opinion.showsCuts) {
    fmt::print(
        "  The difference may be right if the model has a backward of its own (autograd.Function) or a region under "
        "no_grad: the log has no Dynamo graph, which shows them.\n");
  }
}

nlohmann::ordered_json toJson(const TensorVerdict& verdict) {
  nlohmann::ordered_json json{{"name", verdict.name},
                              {"deviation", verdict.deviation},
                              {"tolerance", verdict.tolerance},
                              {"scale", verdict.scale},
                              {"good", verdict.good()}};
  if (!verdict.failure.empty()) json["failure"] = verdict.failure;
  return json;
}

void printJson(const std::string& path, const SecondOpinion& opinion) {
  nlohmann::ordered_json json{{"file", path}, {"compile", opinion.compile}, {"verdict", word(opinion.verdict)}};
  if (!opinion.reason.empty()) json["reason"] = opinion.reason;
  json["findings"] = nlohmann::ordered_json::array();
  for (const auto& f : opinion.findings)
    json["findings"].push_back(
        {{"gradient", f.gradient}, {"what", f.what}, {"op", f.op}, {"line", f.line}, {"source", f.source}});
  json["gradients"] = nlohmann::ordered_json::array();
  for (const auto& verdict : opinion.gradients) json["gradients"].push_back(toJson(verdict));
  json["reference"] = nlohmann::ordered_json::array();
  for (const auto& verdict : opinion.referenced) json["reference"].push_back(toJson(verdict));
  json["job_reference"] = nlohmann::ordered_json::array();
  for (const auto& verdict : opinion.jobReferenced) json["job_reference"].push_back(toJson(verdict));
  if (opinion.parting != SecondOpinion::Parting::none) json["parts"] = word(opinion.parting);
  json["health"] = retrograd::toJson(opinion.health);
  json["none"] = opinion.none;
  json["drawn"] = opinion.drawn;
  json["notes"] = opinion.notes;
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

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
  const auto opinion = secondOpinion(jobs::openJobLog(path, progress), request, progress);
  const bool drawsAll = data.weights.empty() && data.batch.empty();
  format == "json" ? printJson(path, opinion) : printText(opinion, drawsAll);
  return exitCode(opinion, drawsAll);
}

}  // namespace retrograd::cli
