#include "core/formats/jobs/given_tensors.h"

#include <fmt/format.h>

#include <algorithm>

namespace retrograd::jobs {

GivenTensors::GivenTensors(const TensorMap& weights, const TensorMap& batch) {
  for (const auto* map : {&weights, &batch})
    for (const auto& [name, tensor] : *map) entries_.push_back({plainName(name), &tensor, map == &batch});
  for (std::size_t i = 0; i < entries_.size(); ++i) byName_[entries_[i].plain].push_back(i);
}

const TensorData* GivenTensors::find(const InputSource& source) {
  const auto names = namesOf(source);
  for (const bool isAgain : {false, true}) {
    for (const auto& wanted : names) {
      const auto same = byName_.find(wanted);
      if (same == byName_.end()) continue;
      for (const auto i : same->second) {
        if (entries_[i].used && !isAgain) continue;
        entries_[i].used = true;
        return entries_[i].tensor;
      }
    }
  }
  for (const auto& wanted : names) {
    const auto endsSo = [end = "." + wanted](const Entry& entry) { return entry.plain.ends_with(end); };
    const auto first = std::find_if(entries_.begin(), entries_.end(), endsSo);
    if (first == entries_.end() || std::any_of(first + 1, entries_.end(), endsSo)) continue;
    first->used = true;
    return first->tensor;
  }
  return nullptr;
}

const TensorData* GivenTensors::findByType(const InputSource& source, const TensorMeta& type, std::string& name) {
  const auto isPosition = [](const std::string& key) {
    return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (source.kind != InputSource::Kind::input || source.path.size() < 2 || !isPosition(source.path.back()))
    return nullptr;
  const auto fits = [&](const Entry& entry) {
    return entry.ofBatch && !entry.used && entry.tensor->meta.sizes == type.sizes &&
           entry.tensor->meta.dtype == type.dtype;
  };
  const auto only = std::find_if(entries_.begin(), entries_.end(), fits);
  if (only == entries_.end() || std::any_of(only + 1, entries_.end(), fits)) return nullptr;
  only->used = true;
  name = only->plain;
  return only->tensor;
}

std::vector<std::string> GivenTensors::holdersOf(const std::vector<std::string>& names) const {
  if (names.empty()) return {};
  std::vector<std::string> holders;
  const auto end = "." + names.front();
  for (const auto& entry : entries_) {
    if (entry.ofBatch || !entry.plain.ends_with(end)) continue;
    const auto holder = entry.plain.substr(0, entry.plain.size() - end.size());
    const auto holds = [&](const std::string& one) { return byName_.contains(fmt::format("{}.{}", holder, one)); };
    if (std::all_of(names.begin(), names.end(), holds)) holders.push_back(holder);
  }
  return holders;
}

}  // namespace retrograd::jobs
