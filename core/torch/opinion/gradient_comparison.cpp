#include "core/torch/opinion/gradient_comparison.h"

#include <fmt/format.h>

#include <utility>

#include "core/torch/judging/compare.h"

namespace retrograd {

std::string GradientComparison::compare(std::size_t i) {
  auto text = compareDerived(i);
  if (text.empty()) text = compareWithOwn(i);
  return text.empty() || isExplained(i, text) ? std::string() : text;
}

/// What is wrong with a gradient; empty where nothing is.
std::string GradientComparison::compareDerived(std::size_t i) {
  if (derived_.passesUnknown(i)) return compareUnknown(i);
  const auto* derived = derived_.gradient(i);
  const auto* imported = job_.gradient(i);
  if (derived == nullptr && imported == nullptr) {
    ++opinion_.none;
    return {};
  }
  if (imported == nullptr) return "is None, and ours is not";
  if (derived == nullptr)
    return isDifferentiated(graphs_, i) ? "is a tensor, and ours is None"
                                        : "is a tensor, and its input requires no gradient";
  auto verdict = derived_.compare(judge_, i, *imported, *derived);
  if (derived_.isFromJoint(i)) witnessed_.byJoint.push_back(inputLabel(graphs_, i));
  else if (!verdict.good() && derived_.joint() == nullptr && isOnlyUndefined(i, *imported, *derived)) return {};
  return textOf(i, std::move(verdict), *derived);
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
std::string GradientComparison::compareUnknown(std::size_t i) {
  const auto* joint = derived_.joint();
  const auto* imported = job_.gradient(i);
  if (joint == nullptr) {
    witnessed_.unknown.push_back(inputLabel(graphs_, i));
    return {};
  }
  const auto& expected = joint->at(i);
  if (!expected && imported == nullptr) {
    ++opinion_.none;
    return {};
  }
  if (imported == nullptr) return "is None, and that of the joint graph is not";
  if (!expected) return "is a tensor, and that of the joint graph is None";
  return textOf(i, derived_.againstJoint(i, *imported), *expected);
}

/// Keeps a verdict. What is wrong; empty where nothing is.
std::string GradientComparison::textOf(std::size_t i, TensorVerdict verdict, const TensorData& expected) {
  verdict.name = inputLabel(graphs_, i);
  ++opinion_.compared;
  opinion_.gradients.push_back(verdict);
  opinion_.imported.emplace(graphs_.forward.inputs[i].name, *job_.gradient(i));
  if (verdict.good()) opinion_.health.addIfBad("the gradient of " + verdict.name, expected);
  if (verdict.good()) return {};
  if (!verdict.failure.empty()) return verdict.failure;
  return fmt::format("off by {:.3g}, tolerance {:.3g}, largest element {:.3g}", verdict.deviation, verdict.tolerance,
                     verdict.scale);
}

/// Where the program has a backward of its own, a gradient that is the one derived from the forward's ops may lack
/// what that backward gives: it has to be the joint graph's too.
std::string GradientComparison::compareWithOwn(std::size_t i) {
  if (derived_.forward().cuts.ownBackwards.empty() || derived_.passesUnknown(i)) return {};
  const auto* imported = job_.gradient(i);
  if (derived_.joint() == nullptr) {
    if (imported != nullptr) witnessed_.unknown.push_back(inputLabel(graphs_, i));
    return {};
  }
  if (derived_.isAsJoint(judge_, i, imported)) return {};
  if (imported != nullptr && derived_.joint()->at(i) && derived_.againstJoint(i, *imported).good()) return {};
  return "is that of the forward's ops, and not that of the joint graph, which has the program's own backward";
}

/// Whether the job's gradient is that of the joint graph, where it is known that the derived one may be another.
bool GradientComparison::isExplained(std::size_t i, const std::string& text) {
  if (derived_.passesUnknown(i)) return false;
  if ((derived_.forward().isKnown && !derived_.forward().cuts.matter()) || derived_.joint() == nullptr) return false;
  const auto* imported = job_.gradient(i);
  const bool isTensor = imported != nullptr && derived_.joint()->at(i);
  // By the roundings of the joint graph: those of the derived gradient are of another number.
  if (!isTensor ? !derived_.isAsJoint(judge_, i, imported) : !derived_.againstJoint(i, *imported).good()) return false;
  witnessed_.explained.push_back(fmt::format("{}: {}", inputLabel(graphs_, i), text));
  if (isTensor) {
    auto verdict = derived_.againstJoint(i, *imported);
    verdict.name = inputLabel(graphs_, i);
    if (!opinion_.gradients.empty() && opinion_.gradients.back().name == verdict.name) opinion_.gradients.pop_back();
    else ++opinion_.compared;  // the derived one is None
    opinion_.gradients.push_back(std::move(verdict));
  }
  return true;
}

}  // namespace retrograd
