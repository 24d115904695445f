#include "core/questions/memory/memory_stack.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace retrograd {

class MemoryStack::Walk {
 public:
  explicit Walk(const MemoryStack& stack) : stack_(stack) {
    while (made_ < count() && stack_.at(made_).from < 0) ++made_;
    before_ = made_;
  }

  static constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();

  /// Allocations that are older than the first event are [0, older()).
  std::size_t older() const { return before_; }
  /// The event of the next change.
  std::int64_t event() const {
    const std::int64_t made = made_ < count() ? stack_.at(made_).from : end;
    return std::min(made, freed_ < stack_.freed_.size() ? std::int64_t{stack_.at(stack_.freed_[freed_]).to} : end);
  }
  /// Makes the next change: which allocation, and the bytes. What goes at an event goes first.
  std::pair<std::size_t, std::int64_t> next() {
    const auto now = event();
    if (freed_ < stack_.freed_.size() && stack_.at(stack_.freed_[freed_]).to == now) {
      const auto allocation = stack_.freed_[freed_++];
      return {allocation, -static_cast<std::int64_t>(stack_.at(allocation).size)};
    }
    const auto allocation = made_++;
    return {allocation, static_cast<std::int64_t>(stack_.at(allocation).size)};
  }

 private:
  std::size_t count() const { return stack_.whole_->allocations.size(); }

  const MemoryStack& stack_;
  std::size_t made_ = 0, freed_ = 0, before_ = 0;
};

MemoryStack::MemoryStack(std::shared_ptr<const HeldMemory> whole, const GroupedAllocations& grouped, std::size_t most)
    : whole_(std::move(whole)) {
  const auto& allocations = whole_->allocations;
  freed_.reserve(allocations.size());
  for (std::size_t i = 0; i < allocations.size(); ++i)
    if (allocations[i].to >= 0) freed_.push_back(static_cast<std::uint32_t>(i));
  std::ranges::sort(freed_, {}, [this](auto i) { return std::pair(at(i).to, i); });
  // The peak of each group: those that hold most have bands of their own.
  std::vector<std::int64_t> held(grouped.names.size());
  Walk walk(*this);
  for (std::size_t i = 0; i < walk.older(); ++i) held[grouped.groups[i]] += static_cast<std::int64_t>(at(i).size);
  auto peaks = held;
  while (walk.event() != Walk::end) {
    const auto [allocation, bytes] = walk.next();
    const auto group = grouped.groups[allocation];
    peaks[group] = std::max(peaks[group], held[group] += bytes);
  }
  std::vector<std::uint32_t> order(grouped.names.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater(), [&](auto group) { return peaks[group]; });
  most = std::min<std::size_t>(most, std::numeric_limits<std::uint8_t>::max());
  const auto own = order.size() <= most ? order.size() : most - 1;
  bandOf_.assign(order.size(), static_cast<std::uint32_t>(own));
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i < own) bands_.push_back({grouped.names[order[i]], static_cast<std::uint64_t>(peaks[order[i]]), 1});
    else if (i == own) bands_.push_back({{}, 0, order.size() - own});
    bandOf_[order[i]] = static_cast<std::uint32_t>(std::min(i, own));
  }
  bandOfAllocation_.reserve(allocations.size());
  for (const auto group : grouped.groups) bandOfAllocation_.push_back(static_cast<std::uint8_t>(bandOf_[group]));
  if (own == order.size()) return;
  std::int64_t others = 0;
  Walk again(*this);
  const auto see = [&](std::size_t allocation, std::int64_t bytes) {
    if (bandOfAllocation_[allocation] != own) return;
    bands_[own].peak = std::max(bands_[own].peak, static_cast<std::uint64_t>(others += bytes));
  };
  for (std::size_t i = 0; i < again.older(); ++i) see(i, static_cast<std::int64_t>(at(i).size));
  while (again.event() != Walk::end) std::apply(see, again.next());
}

std::vector<MemoryStack::Column> MemoryStack::columns(std::size_t begin, std::size_t end, std::size_t count) const {
  std::vector<Column> columns;
  end = std::min(end, events());
  if (begin >= end || count == 0) return columns;
  count = std::min(count, end - begin);
  std::vector<std::uint64_t> held(bands_.size());
  std::uint64_t sum = 0;
  const auto add = [&](std::size_t allocation, std::int64_t bytes) {
    held[bandOfAllocation_[allocation]] += static_cast<std::uint64_t>(bytes);
    sum += static_cast<std::uint64_t>(bytes);
  };
  Walk walk(*this);
  const auto applyUpTo = [&](std::size_t event) {
    while (walk.event() <= static_cast<std::int64_t>(event)) std::apply(add, walk.next());
  };
  for (std::size_t i = 0; i < walk.older(); ++i) add(i, static_cast<std::int64_t>(at(i).size));
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = begin + (end - begin) * i / count, to = begin + (end - begin) * (i + 1) / count;
    applyUpTo(from);
    Column column{static_cast<std::int64_t>(from), sum, held};
    while (walk.event() < static_cast<std::int64_t>(to)) {
      const auto event = walk.event();
      applyUpTo(static_cast<std::size_t>(event));
      if (sum > column.bytes) column = {event, sum, held};
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace retrograd
