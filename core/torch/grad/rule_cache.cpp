#include "core/torch/grad/rule.h"

namespace retrograd {

std::size_t RuleCache::Hash::operator()(const Key& key) const {
  std::size_t h = key.size();
  for (auto k : key)
    h = (h ^ static_cast<std::size_t>(static_cast<std::uint32_t>(k))) * 0x9e3779b97f4a7c15ULL + (h >> 31);
  return h;
}

Rule* RuleCache::find(const Key& key) {
  auto it = rules_.find(key);
  return it == rules_.end() ? nullptr : it->second.get();
}

Rule* RuleCache::insert(const Key& key, std::unique_ptr<Rule> rule) { return (rules_[key] = std::move(rule)).get(); }

Rule* RuleCache::keep(std::unique_ptr<Rule> rule) { return once_.emplace_back(std::move(rule)).get(); }

void RuleCache::clear() {
  rules_.clear();
  once_.clear();
}

}  // namespace retrograd
