#include "core/questions/memory/block_map.h"

#include <algorithm>
#include <functional>

#include "core/questions/memory/held_memory.h"

namespace retrograd {

std::int32_t BlockMap::add(std::uint64_t address, std::uint64_t size) {
  std::int32_t number = static_cast<std::int32_t>(blocks_.size());
  if (unused_.empty()) {
    blocks_.emplace_back();
  } else {
    number = unused_.back();
    unused_.pop_back();
  }
  auto& block = at(number);
  block = {};
  block.used = true;
  block.what.address = address;
  block.what.size = size;
  byAddress_.add(address, number);
  return number;
}

void BlockMap::drop(std::int32_t number) {
  auto& block = at(number);
  byAddress_.remove(block.what.address);
  block.used = block.held = false;
  unused_.push_back(number);
}

void BlockMap::addSegment(std::uint64_t address, std::uint64_t size) {
  if (const auto number = byAddress_.find(address); number == none) add(address, size);
}

/// A segment is given back when it is one free block.
void BlockMap::removeSegment(std::uint64_t address) {
  const auto number = byAddress_.find(address);
  if (number != none && !at(number).held && at(number).before == none && at(number).after == none) drop(number);
}

std::int32_t BlockMap::lastOf(const Range& range) const {
  auto number = byAddress_.find(range.begin);
  while (number != none && blocks_[static_cast<std::size_t>(number)].after != none)
    number = blocks_[static_cast<std::size_t>(number)].after;
  return number;
}

/// Makes two blocks neighbours, one block where both are free.
void BlockMap::link(std::int32_t before, std::int32_t after) {
  if (before == none || after == none) return;
  at(before).after = after;
  at(after).before = before;
  if (!at(before).held && !at(after).held) joinWithNext(before);
}

void BlockMap::map(std::uint64_t address, std::uint64_t size) {
  if (byAddress_.find(address) != none || size == 0) return;
  const auto number = add(address, size);
  const auto below = std::ranges::find(ranges_, address, &Range::end);
  if (below == ranges_.end()) {
    ranges_.push_back({address, address + size});
  } else {
    link(lastOf(*below), number);
    below->end += size;
  }
  const auto own = std::ranges::find(ranges_, address + size, &Range::end);
  const auto above = std::ranges::find(ranges_, address + size, &Range::begin);
  if (above == ranges_.end() || own == ranges_.end()) return;
  link(lastOf(*own), byAddress_.find(above->begin));
  own->end = above->end;
  ranges_.erase(above);
}

/// Unmapped memory was free; the rests of its block on both sides are in ranges of their own.
void BlockMap::unmap(std::uint64_t address, std::uint64_t size) {
  const auto range = std::ranges::find_if(
      ranges_, [&](const Range& each) { return each.begin <= address && address + size <= each.end; });
  if (range == ranges_.end() || size == 0) return;
  auto number = byAddress_.find(range->begin);
  while (number != none && at(number).what.address + at(number).what.size <= address) number = at(number).after;
  if (number == none || at(number).held || at(number).what.address > address) return;
  const auto begin = at(number).what.address, end = begin + at(number).what.size;
  if (end < address + size) return;
  const auto before = at(number).before, after = at(number).after;
  if (before != none) at(before).after = none;
  if (after != none) at(after).before = none;
  drop(number);
  if (begin < address) {
    const auto rest = add(begin, address - begin);
    link(before, rest);
  }
  if (address + size < end) {
    const auto rest = add(address + size, end - address - size);
    link(rest, after);
  }
  const Range upper{address + size, range->end};
  range->end = address;
  if (range->begin == range->end) ranges_.erase(range);
  if (upper.begin < upper.end) ranges_.push_back(upper);
}

void BlockMap::expectBlock(const MemoryBlock& block) {
  if (expectedAt_.find(block.address) != AddressMap::none) return;
  expectedAt_.add(block.address, static_cast<std::int32_t>(expected_.size()));
  expected_.emplace_back(block.requested, block.size);
}

const HeldBlock& BlockMap::allocate(const MemoryEvent& event, std::uint32_t index) {
  const auto size = sizes_.rounded(event.size);
  auto number = byAddress_.find(event.address);
  if (number == none) {
    const auto found = expectedAt_.find(event.address);
    const auto* expected = found == AddressMap::none ? nullptr : &expected_[static_cast<std::size_t>(found)];
    number = add(event.address, expected && expected->first == event.size ? expected->second : size);
    knowsSegments_ = false;
  } else if (const auto rest = at(number).what.size - size; at(number).what.size > size && sizes_.splits(size, rest) &&
                                                            byAddress_.find(event.address + size) == none) {
    const auto other = add(event.address + size, rest);
    auto& block = at(number);
    block.what.size = size;
    at(other).before = number;
    at(other).after = block.after;
    if (block.after != none) at(block.after).before = other;
    block.after = other;
  }
  auto& block = at(number);
  if (block.what.size < size) block.what.size = size;
  block.held = true;
  block.what.requested = event.size;
  block.what.event = index;
  block.what.place = event.place;
  return block.what;
}

void BlockMap::joinWithNext(std::int32_t number) {
  auto& block = at(number);
  const auto next = block.after;
  block.what.size += at(next).what.size;
  block.after = at(next).after;
  if (block.after != none) at(block.after).before = number;
  drop(next);
}

const HeldBlock* BlockMap::release(std::uint64_t address) {
  auto number = byAddress_.find(address);
  if (number == none || !at(number).held) {
    knowsSegments_ = false;
    return nullptr;
  }
  released_ = at(number).what;
  at(number).held = false;
  if (const auto next = at(number).after; next != none && !at(next).held) joinWithNext(number);
  if (const auto before = at(number).before; before != none && !at(before).held) joinWithNext(before), number = before;
  return &released_;
}

FreeMemory BlockMap::free() const {
  constexpr std::size_t most = 5;
  FreeMemory free;
  free.isWhole = knowsSegments_;
  for (const auto& block : blocks_) {
    if (!block.used || block.held) continue;
    MemoryGap gap;
    gap.address = block.what.address;
    gap.size = block.what.size;
    const auto neighbour = [&](std::int32_t number, std::optional<std::uint32_t>& place, std::uint64_t& bytes) {
      if (number == none) return;
      const auto& other = blocks_[static_cast<std::size_t>(number)].what;
      place = other.place;
      bytes = other.size;
    };
    neighbour(block.before, gap.placeBefore, gap.bytesBefore);
    neighbour(block.after, gap.placeBehind, gap.bytesBehind);
    free.bytes += gap.size;
    ++free.count;
    const auto at = std::ranges::lower_bound(free.largest, gap.size, std::greater(), &MemoryGap::size);
    if (at == free.largest.end() && free.largest.size() >= most) continue;
    free.largest.insert(at, gap);
    if (free.largest.size() > most) free.largest.pop_back();
  }
  return free;
}

}  // namespace retrograd
