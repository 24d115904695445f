#include "core/torch/together/relation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "core/questions/ranks/collective.h"

namespace retrograd {
namespace {

constexpr double sameShare = 1e-4;       // of the norm: two gradients are one
constexpr double impreciseShare = 0.05;  // beyond it, it is no rounding

double largest(const at::Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>(); }
double normOf(const at::Tensor& tensor) { return tensor.norm().item<double>(); }

at::Tensor sumOf(const std::vector<at::Tensor>& parts) {
  auto sum = at::zeros_like(parts.front());
  for (const auto& part : parts) sum.add_(part);
  return sum;
}

bool same(const at::Tensor& a, const at::Tensor& b, double share) {
  return normOf(a - b) <= share * std::max(normOf(b), 1e-300);
}

std::string timesText(double factor) {
  if (std::abs(factor - 2) < 1e-6) return "twice";
  if (std::abs(factor - 0.5) < 1e-6) return "half";
  return fmt::format("{:.4g} times", factor);
}

/// The factor that one is of the other, to sameShare; nothing where it is no multiple, or not of the other at all.
std::optional<double> factorOf(const at::Tensor& actual, const at::Tensor& expected, double share) {
  const auto square = expected.dot(expected).item<double>();
  if (square == 0) return std::nullopt;
  auto factor = actual.dot(expected).item<double>() / square;
  if (!same(actual, expected * factor, share)) return std::nullopt;
  for (double whole = 1; whole <= 64; ++whole) {  // a whole number, or one over it
    if (std::abs(factor - whole) < 2 * share * whole) factor = whole;
    if (std::abs(factor - 1 / whole) < 2 * share / whole) factor = 1 / whole;
  }
  return factor;
}

}  // namespace

Relation relationOf(const GradientSides& sides, bool isSum, const std::string& precision) {
  const auto count = static_cast<double>(sides.parts.size());
  const auto sum = sumOf(sides.parts);
  const auto mean = sum / count;
  const auto& expected = isSum ? sum : mean;
  double scale = 0;
  for (const auto& part : sides.parts) scale = std::max(scale, largest(part));
  Relation found{
      .deviation = largest(sides.read - expected),
      .tolerance = std::max(sides.floor, sides.epsilon * (count + sides.terms + 2) * scale * (isSum ? count : 1)),
      .scale = largest(expected)};
  found.holds = found.deviation <= found.tolerance;
  if (found.holds) return found;
  const double share = std::max(sameShare, 8 * sides.epsilon);
  const auto rank = sides.ranks[sides.self];
  const auto needed = fmt::format("the {} over {} is needed", isSum ? "sum" : "mean", ranksText(sides.ranks));
  const auto say = [&](const char* kind, std::string sentence) {
    found.kind = kind;
    found.sentence = std::move(sentence);
    return found;
  };
  const auto& own = sides.parts[sides.self];
  if (sides.copy.defined() && same(sides.read, sides.copy, share))
    return say("gradient-own-part", fmt::format("rank {} has its own part, the sum is needed", rank));
  if (sides.parts.size() > 1 && same(sides.read, own, share))
    return say("gradient-own-part", fmt::format("rank {} has its own part, {}", rank, needed));
  if (const auto factor = factorOf(sides.read, mean, share)) {
    found.factor = *factor;
    if (sides.terms > 1 && std::abs(*factor * sides.terms - 1) < 1e-3) {  // the loop takes the mean over its backwards
      found.holds = true;
      return found;
    }
    if (*factor == count && !isSum && count > 1)
      return say("gradient-scaled", fmt::format("the sum where the mean of {} is needed", sides.parts.size()));
    if (*factor == 1 && isSum)
      return say("gradient-scaled", fmt::format("the mean where the sum of {} is needed", sides.parts.size()));
    if (*factor != 1)
      return say("gradient-scaled",
                 timesText(isSum ? *factor / count : *factor) + (isSum       ? " the sum"
                                                                 : count > 1 ? " the mean"
                                                                             : " what it has to be"));
  }
  // The mean or sum of fewer ranks.
  for (std::uint32_t chosen = 1; sides.parts.size() <= 8 && chosen < (1U << sides.parts.size()) - 1; ++chosen) {
    if (!(chosen >> sides.self & 1)) continue;
    std::vector<at::Tensor> some;
    std::vector<std::int64_t> ranks;
    for (std::size_t i = 0; i < sides.parts.size(); ++i)
      if (chosen >> i & 1) {
        some.push_back(sides.parts[i]);
        ranks.push_back(sides.ranks[i]);
      }
    if (some.size() < 2) continue;
    const auto part = sumOf(some);
    if (same(sides.read, part / static_cast<double>(some.size()), share) || same(sides.read, part, share) ||
        same(sides.read, part / count, share))
      return say("gradient-wrong-group",
                 fmt::format("reduced over {}, not {}", ranksText(ranks), ranksText(sides.ranks)));
  }
  if (sides.priors.size() == sides.parts.size() && same(sides.read, sumOf(sides.priors) / count, share))
    return say("gradient-lost-part", "the last backward's part is missing: nothing reduced it");
  if (sides.last.defined() && sides.lasts.size() == sides.parts.size() && sides.parts.size() > 1) {
    const auto lasts = sumOf(sides.lasts) / count;
    if (same(sides.read, mean - lasts + sides.last, share))
      return say("gradient-own-part", fmt::format("the part of the last backward is rank {}'s own, {}", rank, needed));
    if (same(sides.read, lasts, share))
      return say("gradient-lost-part", "only the last backward's part is there, and there were more");
    if (same(sides.read, mean - lasts, share)) return say("gradient-lost-part", "the last backward's part is missing");
    if (same(sides.read, own - sides.last + lasts, share))
      return say("gradient-own-part",
                 fmt::format("of the backwards but the last, rank {} has its own part, {}", rank, needed));
    if (same(sides.read, mean * 2 - lasts, share))
      return say("gradient-stale", "the parts of all backwards but the last are there twice");
  }
  const auto off = normOf(sides.read - expected) / std::max(normOf(expected), 1e-300);
  if (off < impreciseShare && !precision.empty())
    return say("gradient-imprecise", fmt::format("reduced in {}: {:.1g} of the norm", precision, off));
  return say("gradient-differs", fmt::format("off by {:.2g} of the norm from {}", off,
                                             sides.parts.size() > 1 ? "the " + std::string(isSum ? "sum" : "mean") +
                                                                          " of the ranks' own parts"
                                                                    : "what it has to be"));
}

}  // namespace retrograd
