#include "core/torch/opinion/reference_opinion.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/user_choice.h"
#include "core/formats/jobs/input_sources.h"
#include "core/torch/judging/compare.h"

namespace retrograd {
namespace {

using Parting = SecondOpinion::Parting;

bool isOff(const std::vector<Claim>& claims) { return !std::ranges::all_of(claims, &Claim::good); }

/// `isApart`: job and derived backward differ from each other.
Parting partingOf(bool jobIsOff, bool derivedIsOff, bool isApart) {
  if (jobIsOff && derivedIsOff) return isApart ? Parting::all : Parting::reference;
  if (jobIsOff) return Parting::job;
  return derivedIsOff && isApart ? Parting::derived : Parting::none;
}

std::string_view sentenceOf(Parting parting) {
  switch (parting) {
    case Parting::none: return "";
    case Parting::job: return "the job parts from the reference and from the derived backward, which agree";
    case Parting::derived: return "the derived backward parts from the job and from the reference, which agree";
    case Parting::reference: return "the reference parts from the job and from the derived backward, which agree";
    case Parting::all: return "job, derived backward and reference all differ from each other";
  }
  return "";
}

/// Tensors by name of the reference ("loss", "grad.w"): the name that the judge has for it, and the tensors that the
/// job and the derived backward gave; null where they gave none.
struct Compared {
  std::string name, judged;
  const TensorData* job = nullptr;
  const TensorData* derived = nullptr;
  std::optional<std::size_t> input = {};  ///< of a gradient: whose
};

/// The input of this name in the Python program.
std::optional<std::size_t> inputNamed(const JobGraphs& graphs, std::string_view name) {
  for (std::size_t i = graphs.sources.size(); i-- > 0;)
    if (graphs.sources[i] && jobs::plainName(graphs.sources[i]->name) == jobs::plainName(name)) return i;
  return std::nullopt;
}

/// The same by any name of a tied parameter: a compile has it once, under the name by which it met it first.
std::optional<std::size_t> inputOf(const ReferenceSides& sides, std::string_view name) {
  auto input = inputNamed(sides.graphs, name);
  if (input) return input;
  for (const auto& other : tiedNames(sides.weights, name))
    if (!input) input = inputNamed(sides.graphs, other);
  return input;
}

/// What a tensor of the reference is compared with: "loss", "grad.w", and as a captured folder has them "grad.p.w",
/// "grad.in.x" and "out.0". Nothing for another name.
std::optional<Compared> comparedOf(const std::string& name, const ReferenceSides& sides) {
  const auto position = sides.graphs.differentiated.front();
  if (name == "loss" || (name == "out.0" && position == 0))
    return Compared{name, "out.0", sides.job.result(position), &sides.derived.results().at("out.0")};
  if (!name.starts_with("grad.")) return std::nullopt;
  const auto rest = std::string_view(name).substr(5);
  auto input = inputOf(sides, rest);
  for (const std::string_view kind : {"p.", "in."})
    if (!input && rest.starts_with(kind)) input = inputOf(sides, rest.substr(kind.size()));
  if (!input) return std::nullopt;
  const auto* derived = sides.derived.gradient(*input);
  if (const auto* joint = sides.derived.passesUnknown(*input) ? sides.derived.joint() : nullptr)
    derived = joint->at(*input) ? &*joint->at(*input) : nullptr;
  return Compared{name, sides.derived.gradientName(*input), sides.job.gradient(*input), derived, input};
}

/// Why nothing of the reference can be compared; empty where it can.
std::string whyNot(const ReferenceSides& sides) {
  const auto& results = sides.derived.results();
  const auto loss = results.find("out.0");
  if (sides.drawsBetween)
    return "the loss comes from a value that is drawn, because the program computed it between its compiled functions";
  if (sides.graphs.differentiated.size() != 1 || loss == results.end() || !loss->second.meta.sizes.empty())
    return "it is the whole program's, and this part of the model does not end in the loss";
  if (drawsRandomNumbers(*sides.derived.model().analysis))
    return "the forward draws random numbers (dropout), and the job drew others";
  if (sides.derived.dependsOnOpaque() && !sides.unfilled.empty())
    return fmt::format("the loss depends on ops that did not run; {} gives their results: {}", nameOf(UserChoice::fill),
                       shortList(sides.unfilled));
  return {};
}

/// A reference that is given and not compared makes no verdict possible.
void leave(const std::string& why, SecondOpinion& opinion) { opinion.report.notJudged.push_back({{}, why}); }

bool isOneMemory(const TensorData& a, const TensorData& b) {
  return a.data != nullptr && a.data == b.data && a.meta.offset == b.meta.offset && a.meta.sizes == b.meta.sizes &&
         a.meta.strides == b.meta.strides && a.meta.dtype == b.meta.dtype;
}

bool isConstant(const TensorData& tensor) {
  const auto values = asDoubles(tensor);
  return std::ranges::all_of(values, [&](double value) { return value == values.front(); });
}

}  // namespace

bool convolvesInTf32(const fx::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const fx::Node& node) {
    if (!node.call.isCallOf("torch.ops.aten.convolution.default") || node.type == fx::noIndex) return false;
    const auto& type = graph.types[node.type];
    return type.dtype == DType::f32 && type.device.starts_with("cuda");
  });
}

void compareWithReference(const TensorMap& reference, const ReferenceSides& sides, SecondOpinion& opinion) {
  if (const auto why = whyNot(sides); !why.empty()) return leave("the reference is not compared: " + why, opinion);
  std::vector<Compared> compared;
  std::vector<std::string> unknown;
  for (const auto& [name, expected] : reference) {
    if (name.starts_with("in.") || name.starts_with("cot.")) continue;  // what flowed in
    if (const auto entry = comparedOf(name, sides)) compared.push_back(*entry);
    else unknown.push_back(name);
  }
  if (!unknown.empty()) leave("the reference has what this compile does not give: " + shortList(unknown), opinion);
  if (compared.empty())
    return leave("the reference is not compared: it has neither a loss nor a gradient of an input of this compile",
                 opinion);
  const bool tf32 = convolvesInTf32(sides.graphs.forward);
  if (tf32)
    opinion.report.notes.emplace_back(
        "the job ran float32 convolutions on a GPU, which rounds their operands to TF32 by default: the reference is "
        "compared with that tolerance");
  constexpr double tf32Tolerance = 4.0 / 2048;  // a few roundings of operands to 11 bits
  auto judge = sides.derived.judge();
  const auto claimOn = [&](const Compared& entry, const TensorData* tensor) {
    if (tensor == nullptr) return claimOf(Producer::reference, entry.name, Measure::failed("missing"));
    const auto& expected = reference.at(entry.name);
    auto measure = entry.input ? sides.derived.compare(judge, *entry.input, *tensor, expected)
                               : judge.compare(entry.judged, *tensor, expected);
    if (tf32) measure.tolerance = std::max(measure.tolerance, tf32Tolerance * measure.scale);
    return claimOf(Producer::reference, entry.name, std::move(measure));
  };
  std::vector<Claim> ofDerived, ofJob;
  for (const auto& entry : compared) {
    ofDerived.push_back(claimOn(entry, entry.derived));
    ofJob.push_back(claimOn(entry, entry.job));
  }
  const bool isApart =
      std::ranges::find(opinion.report.claims, Severity::fault, &Claim::severity) != opinion.report.claims.end();
  opinion.parting = partingOf(isOff(ofJob), isOff(ofDerived), isApart);
  auto& claims = opinion.report.claims;
  claims.insert(claims.end(), ofJob.begin(), ofJob.end());
  if (opinion.parting != Parting::none)
    claims.push_back({.by = Producer::reference,
                      .severity = Severity::note,
                      .kind = "parting",
                      .sentence = std::string(sentenceOf(opinion.parting))});
  for (auto& claim : ofDerived) {
    claim.kind = "derived-tensor";
    claim.severity = std::min(claim.severity, Severity::note);
    claims.push_back(std::move(claim));
  }
}

std::vector<std::string> tiedNames(const TensorMap& weights, std::string_view name) {
  const auto wanted = jobs::plainName(name);
  const auto own =
      std::ranges::find_if(weights, [&](const auto& weight) { return jobs::plainName(weight.first) == wanted; });
  if (own == weights.end()) return {};
  std::vector<std::string> names;
  for (auto other = weights.begin(); other != weights.end(); ++other) {
    if (other == own) continue;
    if (isOneMemory(own->second, other->second) || (identical(own->second, other->second) && !isConstant(own->second)))
      names.push_back(jobs::plainName(other->first));
  }
  return names;
}

}  // namespace retrograd
