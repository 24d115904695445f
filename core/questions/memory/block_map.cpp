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

const HeldBlock& BlockMap::allocate(const MemoryEvent& event, std::uint32_t index) {
  const auto size = sizes_.rounded(event.size);
  auto number = byAddress_.find(event.address);
  if (number == none) {
    number = add(event.address, size);  // of a segment that is older than the history
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
  if (number == none || !at(number).held) return nullptr;
  released_ = at(number).what;
  at(number).held = false;
  if (const auto next = at(number).after; next != none && !at(next).held) joinWithNext(number);
  if (const auto before = at(number).before; before != none && !at(before).held) joinWithNext(before), number = before;
  return &released_;
}

FreeMemory BlockMap::free() const {
  constexpr std::size_t most = 5;
  FreeMemory free;
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
