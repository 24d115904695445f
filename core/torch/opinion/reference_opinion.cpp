#include "core/torch/opinion/reference_opinion.h"

#include <algorithm>

namespace retrograd {
namespace {

using Parting = SecondOpinion::Parting;

bool isOff(const std::vector<TensorVerdict>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(), [](const auto& verdict) { return !verdict.good(); });
}

/// `isApart`: job and derived backward differ from each other.
Parting partingOf(bool jobIsOff, bool derivedIsOff, bool isApart) {
  if (jobIsOff && derivedIsOff) return isApart ? Parting::all : Parting::reference;
  if (jobIsOff) return Parting::job;
  return derivedIsOff && isApart ? Parting::derived : Parting::none;
}

}  // namespace

bool convolvesInTf32(const fx::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const fx::Node& node) {
    if (!node.call.isCallOf("torch.ops.aten.convolution.default") || node.type == fx::noIndex) return false;
    const auto& type = graph.types[node.type];
    return type.dtype == DType::f32 && type.device.starts_with("cuda");
  });
}

void compareWithReference(const TensorMap& reference, const std::vector<Compared>& compared, Judge& judge, bool tf32,
                          SecondOpinion& opinion) {
  constexpr double tf32Tolerance = 4.0 / 2048;  // a few roundings of operands to 11 bits
  const auto verdictOf = [&](const Compared& entry, const TensorData* tensor, const TensorData& expected) {
    if (tensor == nullptr) return TensorVerdict{entry.name, 0, 0, 0, "missing"};
    auto verdict = judge.compare(entry.judged, *tensor, expected);
    verdict.name = entry.name;
    if (tf32) verdict.tolerance = std::max(verdict.tolerance, tf32Tolerance * verdict.scale);
    return verdict;
  };
  for (const auto& entry : compared) {
    const auto& expected = reference.at(entry.name);
    opinion.referenced.push_back(verdictOf(entry, entry.derived, expected));
    opinion.jobReferenced.push_back(verdictOf(entry, entry.job, expected));
  }
  opinion.parting = partingOf(isOff(opinion.jobReferenced), isOff(opinion.referenced), !opinion.findings.empty());
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

}  // namespace retrograd
