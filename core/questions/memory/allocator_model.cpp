#include "core/questions/memory/allocator_model.h"

#include <algorithm>
#include <iterator>

#include "core/questions/memory/address_map.h"

namespace retrograd {

void AllocatorModel::begin(const HistoryOutline& outline) {
  std::vector<SegmentLife> older;
  std::ranges::copy_if(outline.segments, std::back_inserter(older), [](const auto& each) { return each.from < 0; });
  std::ranges::sort(older, {}, &SegmentLife::address);
  for (const auto& segment : older) {
    const Pool pool{segment.stream, segment.small};
    auto& grown = grown_[pool];
    const bool goesOn = segment.expandable && grown.end == segment.address && grown.end > 0;
    auto& block = blocks_[goesOn ? grown.begin : segment.address];
    if (goesOn) freeOf(pool).erase({block.size, grown.begin});
    else block = {0, segment.address, false, pool};
    block.size += segment.size;
    freeOf(pool).insert({block.size, block.segment});
    reserved_ += segment.size;
    if (segment.expandable) grown = {block.segment, segment.address + segment.size};
  }
  peakReserved_ = reserved_;
  for (const auto& block : outline.older) hold(block);
  peakBytes_ = bytes_;
}

void AllocatorModel::hold(const OlderBlock& older) {
  auto at = blocks_.upper_bound(older.address);
  if (at == blocks_.begin()) return;
  --at;
  const auto end = at->first + at->second.size;
  if (at->second.held || older.size == 0 || older.address + older.size > end) return;  // of no segment
  freeOf(at->second.pool).erase({at->second.size, at->first});
  if (at->first < older.address) {
    cut(at->first, older.address - at->first);
    freeOf(at->second.pool).insert({at->second.size, at->first});
    at = std::next(at);
    freeOf(at->second.pool).erase({at->second.size, at->first});
  }
  if (older.address + older.size < end) cut(older.address, older.size);
  at->second.held = true;
  bytes_ += at->second.size;
}

void AllocatorModel::expectSegment(std::uint64_t size, std::int64_t stream, std::uint64_t address) {
  auto& list = expected_[{size, stream}];
  list.insert(list.begin(), address);
}

/// The first block by size and address that holds the request. Blocks above the limit for cutting are kept for requests
/// above it, and not for much smaller ones.
std::optional<std::uint64_t> AllocatorModel::freeBlock(const Pool& pool, std::uint64_t size) const {
  const auto found = free_.find(pool);
  if (found == free_.end()) return std::nullopt;
  const auto block = found->second.lower_bound({size, 0});
  if (block == found->second.end()) return std::nullopt;
  const auto most = sizes_.maxSplit();
  if (!sizes_.expandable()) {
    if (size < most && block->first >= most) return std::nullopt;
    if (size >= most && block->first >= size + allocator::largeSegment) return std::nullopt;
  }
  return block->second;
}

std::uint64_t AllocatorModel::placeOfSegment(std::uint64_t size, std::int64_t stream) {
  const auto expected = expected_.find({size, stream});
  if (expected == expected_.end() || expected->second.empty()) return invented_;
  const auto address = expected->second.back();
  expected->second.pop_back();
  return address;
}

/// A free block at the segment's end takes part: only what it lacks is mapped.
std::uint64_t AllocatorModel::grow(const Pool& pool, std::uint64_t rounded) {
  const auto part = pool.small ? allocator::smallSegment : allocator::largeSegment;
  const auto roundUp = [&](std::uint64_t size) { return (size + part - 1) / part * part; };
  auto& segment = grown_[pool];
  if (segment.end == 0) {
    segment.begin = segment.end = placeOfSegment(roundUp(rounded), pool.stream);
    if (segment.begin == invented_) invented_ += std::uint64_t{1} << 44;
  }
  auto address = segment.end;
  std::uint64_t free = 0;
  if (const auto behind = blocks_.lower_bound(segment.end); behind != blocks_.begin()) {
    const auto& [begin, last] = *std::prev(behind);
    if (!last.held && last.segment == segment.begin && begin + last.size == segment.end) {
      address = begin;
      free = last.size;
      freeOf(pool).erase({free, address});
    }
  }
  const auto more = roundUp(rounded - free);
  blocks_[address] = {free + more, segment.begin, false, pool};
  freeOf(pool).insert({free + more, address});
  segment.end += more;
  reserved_ += more;
  peakReserved_ = std::max(peakReserved_, reserved_);
  return address;
}

std::uint64_t AllocatorModel::newSegment(const Pool& pool, std::uint64_t rounded) {
  const auto size = BlockSizes::segment(rounded);
  auto address = placeOfSegment(size, pool.stream);
  if (const auto [taken, isNew] = blocks_.try_emplace(address); isNew) {
    taken->second = {size, address, false, pool};
  } else {
    address = invented_;
    blocks_[address] = {size, address, false, pool};
  }
  if (address == invented_) invented_ += size + allocator::largeSegment;
  freeOf(pool).insert({size, address});
  reserved_ += size;
  peakReserved_ = std::max(peakReserved_, reserved_);
  return address;
}

void AllocatorModel::cut(std::uint64_t address, std::uint64_t size) {
  auto& block = blocks_[address];
  const auto rest = block.size - size;
  block.size = size;
  blocks_[address + size] = {rest, block.segment, false, block.pool};
  freeOf(block.pool).insert({rest, address + size});
}

std::uint64_t AllocatorModel::allocate(std::uint64_t requested, std::int64_t stream) {
  const auto size = sizes_.rounded(requested);
  const Pool pool{stream, BlockSizes::small(size)};
  const auto found = freeBlock(pool, size);
  const auto address = found ? *found : sizes_.expandable() ? grow(pool, size) : newSegment(pool, size);
  freeOf(pool).erase({blocks_[address].size, address});
  if (const auto rest = blocks_[address].size - size; rest > 0 && sizes_.splits(size, rest)) cut(address, size);
  auto& block = blocks_[address];
  block.held = true;
  bytes_ += block.size;
  peakBytes_ = std::max(peakBytes_, bytes_);
  return address;
}

bool AllocatorModel::areJoinable(const Blocks::iterator& first, const Blocks::iterator& second) const {
  return first->second.segment == second->second.segment && !first->second.held && !second->second.held;
}

void AllocatorModel::release(std::uint64_t address) {
  auto block = blocks_.find(address);
  if (block == blocks_.end() || !block->second.held) return;
  block->second.held = false;
  bytes_ -= block->second.size;
  auto& free = freeOf(block->second.pool);
  if (const auto next = std::next(block); next != blocks_.end() && areJoinable(block, next)) {
    free.erase({next->second.size, next->first});
    block->second.size += next->second.size;
    blocks_.erase(next);
  }
  if (block != blocks_.begin()) {
    if (const auto before = std::prev(block); areJoinable(before, block)) {
      free.erase({before->second.size, before->first});
      before->second.size += block->second.size;
      blocks_.erase(block);
      block = before;
    }
  }
  free.insert({block->second.size, block->first});
}

void AllocatorModel::giveBack(std::uint64_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end() || block->second.held || block->second.segment != address) return;
  if (const auto next = std::next(block); next != blocks_.end() && next->second.segment == address) return;
  freeOf(block->second.pool).erase({block->second.size, address});
  reserved_ -= block->second.size;
  blocks_.erase(block);
}

AllocatorRequests allocatorRequests(const MemorySnapshot& snapshot, std::size_t device) {
  using Kind = AllocatorRequest::Kind;
  AllocatorRequests all;
  AddressMap held;
  all.outline = historyOutline(snapshot, device);
  for (const auto& block : all.outline.older) {
    if (held.find(block.address) == AddressMap::none)
      held.add(block.address, static_cast<std::int32_t>(all.addresses.size()));
    all.addresses.push_back(block.address);
    all.madeAt.push_back(SegmentLife::outside);
  }
  EventLog::Cursor cursor(snapshot.events[device]);
  MemoryEvent event;
  const auto release = [&](std::int64_t at) {
    const auto allocation = held.find(event.address);
    if (allocation == AddressMap::none) return;
    held.remove(event.address);
    all.requests.push_back({Kind::release, static_cast<std::uint32_t>(allocation), 0, event.stream});
    all.events.push_back(at);
  };
  for (std::int64_t i = 0; cursor.next(event); ++i) {
    if (event.action == MemoryAction::freeCompleted) {
      release(i);
    } else if (event.action == MemoryAction::segmentFree) {
      all.requests.push_back({Kind::giveBack, 0, event.address, event.stream});
      all.events.push_back(i);
    } else if (event.action == MemoryAction::alloc) {
      release(i);  // the history lacks that it was let go
      const auto number = static_cast<std::uint32_t>(all.addresses.size());
      held.add(event.address, static_cast<std::int32_t>(number));
      all.addresses.push_back(event.address);
      all.madeAt.push_back(i);
      all.requests.push_back({Kind::allocate, number, event.size, event.stream});
      all.events.push_back(i);
    }
  }
  return all;
}

ModelledMemory modelledMemory(const MemorySnapshot& snapshot, std::size_t device, const AllocatorRequests& requests) {
  using Kind = AllocatorRequest::Kind;
  AllocatorModel model(snapshot.settings);
  model.begin(requests.outline);
  EventLog::Cursor cursor(snapshot.events[device]);
  for (MemoryEvent event; cursor.next(event);)
    if (event.action == MemoryAction::segmentAlloc || event.action == MemoryAction::segmentMap)
      model.expectSegment(event.size, event.stream, event.address);
  ModelledMemory result;
  std::unordered_map<std::uint32_t, std::uint64_t> addresses;
  for (std::size_t i = 0; i < requests.outline.older.size(); ++i)
    addresses.emplace(static_cast<std::uint32_t>(i), requests.outline.older[i].address);
  for (const auto& request : requests.requests) {
    if (request.kind == Kind::giveBack) {
      model.giveBack(request.size);
    } else if (request.kind == Kind::release) {
      const auto at = addresses.find(request.allocation);
      if (at == addresses.end()) continue;
      model.release(at->second);
      addresses.erase(at);
    } else {
      const auto address = addresses[request.allocation] = model.allocate(request.size, request.stream);
      ++result.allocations;
      if (request.allocation < requests.addresses.size())
        result.atTheirAddress += address == requests.addresses[request.allocation];
    }
  }
  result.peakBytes = model.peakBytes();
  result.peakReserved = model.peakReserved();
  result.endBytes = model.bytes();
  return result;
}

}  // namespace retrograd
