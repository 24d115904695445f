#include "core/derivation/registry.h"

namespace retrograd {
namespace {

template <class T>
const T* find(const std::map<std::string, T, std::less<>>& rules, std::string_view op) {
  const auto it = rules.find(op);
  return it == rules.end() ? nullptr : &it->second;
}

}  // namespace

RuleRegistry::~RuleRegistry() = default;

void RuleRegistry::addGradTransform(std::string op, GradTransform rule) {
  transforms_[std::move(op)] = std::move(rule);
}

void RuleRegistry::addAugmentedPair(std::string op, AugmentedForward forward, AugmentedBackward backward) {
  pairs_[std::move(op)] = {std::move(forward), std::move(backward)};
}

void RuleRegistry::addDecomposition(std::string op, Decomposition rule) {
  decompositions_[std::move(op)] = std::move(rule);
}

const GradTransform* RuleRegistry::findGradTransform(std::string_view op) const { return find(transforms_, op); }

const RuleRegistry::Pair* RuleRegistry::findAugmentedPair(std::string_view op) const { return find(pairs_, op); }

const Decomposition* RuleRegistry::findDecomposition(std::string_view op) const { return find(decompositions_, op); }

}  // namespace retrograd
