#include "core/questions/memory/memory_stack.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace retrograd {

MemoryStack::MemoryStack(const HeldMemory& whole, const GroupedAllocations& grouped, std::size_t most)
    : events_(whole.events) {
  std::vector<std::int64_t> held(grouped.names.size()), peaks(grouped.names.size());
  changes_.reserve(2 * whole.allocations.size());
  for (std::size_t i = 0; i < whole.allocations.size(); ++i) {
    const auto& allocation = whole.allocations[i];
    const auto group = grouped.groups[i];
    const auto size = static_cast<std::int64_t>(allocation.size);
    if (allocation.from < 0) held[group] += size;
    else changes_.push_back({size, static_cast<std::uint32_t>(allocation.from), group});
    if (allocation.to >= 0) changes_.push_back({-size, static_cast<std::uint32_t>(allocation.to), group});
  }
  std::ranges::sort(changes_, [](const Change& a, const Change& b) {
    return a.event != b.event ? a.event < b.event : a.bytes < b.bytes;  // what goes at an event goes first
  });
  const auto before = held;
  peaks = held;
  for (const auto& change : changes_) {
    held[change.band] += change.bytes;
    peaks[change.band] = std::max(peaks[change.band], held[change.band]);
  }
  std::vector<std::uint32_t> order(grouped.names.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater(), [&](auto group) { return peaks[group]; });
  const auto own = order.size() <= most ? order.size() : most - 1;
  bandOf_.assign(order.size(), static_cast<std::uint32_t>(own));
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i < own) bands_.push_back({grouped.names[order[i]], static_cast<std::uint64_t>(peaks[order[i]]), 1});
    else if (i == own) bands_.push_back({{}, 0, order.size() - own});
    bandOf_[order[i]] = static_cast<std::uint32_t>(std::min(i, own));
  }
  before_.resize(bands_.size());
  for (std::size_t group = 0; group < before.size(); ++group)
    before_[bandOf_[group]] += static_cast<std::uint64_t>(before[group]);
  for (auto& change : changes_) change.band = bandOf_[change.band];
  if (own == order.size()) return;
  auto others = static_cast<std::int64_t>(before_[own]);
  for (const auto& change : changes_)
    if (change.band == own)
      others += change.bytes, bands_[own].peak = std::max(bands_[own].peak, static_cast<std::uint64_t>(others));
}

std::vector<MemoryStack::Column> MemoryStack::columns(std::size_t begin, std::size_t end, std::size_t count) const {
  std::vector<Column> columns;
  end = std::min(end, events_);
  if (begin >= end || count == 0) return columns;
  count = std::min(count, end - begin);
  auto held = before_;
  auto sum = std::accumulate(held.begin(), held.end(), std::uint64_t{0});
  auto change = changes_.begin();
  const auto apply = [&] {
    held[change->band] += static_cast<std::uint64_t>(change->bytes);
    sum += static_cast<std::uint64_t>(change->bytes);
    ++change;
  };
  for (; change != changes_.end() && change->event < begin;) apply();
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = begin + (end - begin) * i / count, to = begin + (end - begin) * (i + 1) / count;
    while (change != changes_.end() && change->event == from) apply();
    Column column{static_cast<std::int64_t>(from), sum, held};
    while (change != changes_.end() && change->event < to) {
      const auto event = change->event;
      while (change != changes_.end() && change->event == event) apply();
      if (sum > column.bytes) column = {event, sum, held};
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace retrograd
