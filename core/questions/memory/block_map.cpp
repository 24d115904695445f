#include "core/questions/memory/block_map.h"

#include <algorithm>
#include <utility>

namespace retrograd {

BlockMap::BlockMap(const AllocatorSettings& settings, const HistoryOutline& outline) : sizes_(settings) {
  for (const auto& segment : outline.segments) {
    if (segment.from >= 0) continue;
    if (segment.expandable) map(segment.address, segment.size);
    else addSegment(segment.address, segment.size);
  }
  begin(outline.older);
}

void BlockMap::hold(std::int32_t number, const OlderBlock& block) {
  auto& what = at(number).what;
  what.requested = block.requested;
  what.event = HeldBlock::older;
  what.place = block.place;
  at(number).held = true;
}

/// Cuts what is held before the first event out of the segments.
void BlockMap::begin(const std::vector<OlderBlock>& older) {
  std::vector<std::pair<std::uint64_t, std::int32_t>> free;  // by address
  for (std::size_t number = 0; number < blocks_.size(); ++number)
    if (blocks_[number].used) free.emplace_back(blocks_[number].what.address, static_cast<std::int32_t>(number));
  std::ranges::sort(free);
  std::uint64_t last = 0;
  for (const auto& block : older) {
    if (block.size == 0 || block.address < last) continue;  // of a damaged history
    last = block.address + block.size;
    const auto behind = std::ranges::upper_bound(free, block.address, {}, [](const auto& each) { return each.first; });
    auto number = behind == free.begin() ? none : std::prev(behind)->second;
    const auto there = byAddress_.find(block.address);
    if (number == none || at(number).what.address + at(number).what.size < last) {  // of no segment
      if (there == none) hold(add(block.address, block.size), block);
      continue;
    }
    if (there != none && there != number) continue;
    if (there == none) number = cut(number, block.address - at(number).what.address);
    if (at(number).what.size > block.size && byAddress_.find(last) == none)
      *std::prev(behind) = {last, cut(number, block.size)};
    hold(number, block);
  }
}

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
  while (number != none && blocks_[number].after != none) number = blocks_[number].after;
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

/// Makes the rest of a block behind its first bytes one of its own.
std::int32_t BlockMap::cut(std::int32_t number, std::uint64_t size) {
  const auto other = add(at(number).what.address + size, at(number).what.size - size);
  auto& block = at(number);
  block.what.size = size;
  at(other).before = number;
  at(other).after = block.after;
  if (block.after != none) at(block.after).before = other;
  block.after = other;
  return other;
}

const HeldBlock& BlockMap::allocate(const MemoryEvent& event, std::uint32_t index) {
  const auto size = sizes_.rounded(event.size);
  auto number = byAddress_.find(event.address);
  if (number == none) number = add(event.address, size);
  else if (const auto whole = at(number).what.size;
           whole > size && sizes_.splits(size, whole - size) && byAddress_.find(event.address + size) == none)
    cut(number, size);
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
  if (number == none || !at(number).held) return nullptr;
  released_ = at(number).what;
  at(number).held = false;
  if (const auto next = at(number).after; next != none && !at(next).held) joinWithNext(number);
  if (const auto before = at(number).before; before != none && !at(before).held) joinWithNext(before), number = before;
  return &released_;
}

}  // namespace retrograd
