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

void compareWithReference(const TensorMap& reference, const std::vector<Compared>& compared, Judge& judge,
                          SecondOpinion& opinion) {
  const auto verdictOf = [&](const Compared& entry, const TensorData* tensor, const TensorData& expected) {
    if (tensor == nullptr) return TensorVerdict{entry.name, 0, 0, 0, "missing"};
    auto verdict = judge.compare(entry.judged, *tensor, expected);
    verdict.name = entry.name;
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
