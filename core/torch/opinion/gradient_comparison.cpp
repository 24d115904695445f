#include "core/torch/opinion/gradient_comparison.h"

#include <fmt/format.h>

#include <utility>

#include "core/torch/judging/compare.h"
#include "core/torch/judging/health.h"

namespace retrograd {

std::optional<Claim> GradientComparison::compare(std::size_t i) {
  auto found = compareDerived(i);
  if (!found || found->good())
    if (auto own = compareWithOwn(i)) found = std::move(own);
  if (!found || found->good() || !isExplained(i, *found->measure)) return found;
  const auto* imported = job_.gradient(i);
  if (imported == nullptr || !derived_.joint()->at(i)) return std::nullopt;
  return claim(i, Producer::jointGraph, derived_.againstJoint(i, *imported));
}

Claim GradientComparison::claim(std::size_t i, Producer by, Measure measure) const {
  return claimOf(by, inputLabel(graphs_, i), std::move(measure));
}

Claim GradientComparison::failed(std::size_t i, Producer by, const char* why) const {
  return claim(i, by, Measure::failed(why));
}

std::optional<Claim> GradientComparison::compareDerived(std::size_t i) {
  if (derived_.passesUnknown(i)) return compareUnknown(i);
  const auto* derived = derived_.gradient(i);
  const auto* imported = job_.gradient(i);
  if (derived == nullptr && imported == nullptr) {
    ++none_;
    return std::nullopt;
  }
  if (imported == nullptr) return failed(i, Producer::derivative, "is None, and ours is not");
  if (derived == nullptr)
    return failed(i, Producer::derivative,
                  isDifferentiated(graphs_, i) ? "is a tensor, and ours is None"
                                               : "is a tensor, and its input requires no gradient");
  auto measure = derived_.compare(judge_, i, *imported, *derived);
  if (derived_.isFromJoint(i)) witnessed_.byJoint.push_back(inputLabel(graphs_, i));
  else if (!measure.good() && derived_.joint() == nullptr && isOnlyUndefined(i, *imported, *derived))
    return std::nullopt;
  return byValue(i, Producer::derivative, std::move(measure), *derived);
}

/// Whether a gradient is wrong only where the derived one is NaN or infinite, and nothing says which is right.
bool GradientComparison::isOnlyUndefined(std::size_t i, const TensorData& imported, const TensorData& derived) {
  if (!shapeDifference(imported, derived).empty() ||
      !derived_.compare(judge_, i, imported, finiteOr(derived, imported)).good())
    return false;
  witnessed_.undefined.push_back(inputLabel(graphs_, i));
  return true;
}

/// A gradient that has a part through an op that is not derived here: the joint graph's is the one to compare with.
std::optional<Claim> GradientComparison::compareUnknown(std::size_t i) {
  const auto* joint = derived_.joint();
  const auto* imported = job_.gradient(i);
  if (joint == nullptr) {
    witnessed_.unknown.push_back(inputLabel(graphs_, i));
    return std::nullopt;
  }
  const auto& expected = joint->at(i);
  if (!expected && imported == nullptr) {
    ++none_;
    return std::nullopt;
  }
  if (imported == nullptr) return failed(i, Producer::jointGraph, "is None, and that of the joint graph is not");
  if (!expected) return failed(i, Producer::jointGraph, "is a tensor, and that of the joint graph is None");
  return byValue(i, Producer::jointGraph, derived_.againstJoint(i, *imported), *expected);
}

Claim GradientComparison::byValue(std::size_t i, Producer by, Measure measure, const TensorData& expected) {
  opinion_.imported.emplace(graphs_.forward.inputs[i].name, *job_.gradient(i));
  if (measure.good())
    if (auto bad = retrograd::notFinite("the gradient of " + inputLabel(graphs_, i), expected))
      notFinite_.push_back(std::move(*bad));
  return claim(i, by, std::move(measure));
}

/// Where the program has a backward of its own, a gradient that is the one derived from the forward's ops may lack
/// what that backward gives: it has to be the joint graph's too.
std::optional<Claim> GradientComparison::compareWithOwn(std::size_t i) {
  if (derived_.forward().cuts.ownBackwards.empty() || derived_.passesUnknown(i)) return std::nullopt;
  const auto* imported = job_.gradient(i);
  if (derived_.joint() == nullptr) {
    if (imported != nullptr) witnessed_.unknown.push_back(inputLabel(graphs_, i));
    return std::nullopt;
  }
  if (derived_.isAsJoint(judge_, i, imported)) return std::nullopt;
  if (imported != nullptr && derived_.joint()->at(i) && derived_.againstJoint(i, *imported).good()) return std::nullopt;
  return failed(i, Producer::jointGraph,
                "is that of the forward's ops, and not that of the joint graph, which has the program's own backward");
}

/// Whether the job's gradient is that of the joint graph, where it is known that the derived one may be another.
bool GradientComparison::isExplained(std::size_t i, const Measure& measure) {
  if (derived_.passesUnknown(i)) return false;
  if ((derived_.forward().isKnown && !derived_.forward().cuts.matter()) || derived_.joint() == nullptr) return false;
  const auto* imported = job_.gradient(i);
  const bool isTensor = imported != nullptr && derived_.joint()->at(i);
  // By the roundings of the joint graph: those of the derived gradient are of another number.
  if (!isTensor ? !derived_.isAsJoint(judge_, i, imported) : !derived_.againstJoint(i, *imported).good()) return false;
  witnessed_.explained.push_back(fmt::format("{}: {}", inputLabel(graphs_, i), textOf(measure)));
  return true;
}

}  // namespace retrograd
