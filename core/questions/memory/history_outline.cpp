#include "core/questions/memory/history_outline.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/questions/memory/address_map.h"

namespace retrograd {
namespace {

/// A block that is older than the history, with what is known of its size.
struct Candidate {
  OlderBlock block;
  std::int64_t to = SegmentLife::outside;
  std::uint64_t lastStart = 0;  ///< the last address at which something else may begin behind it
  bool isExact = true;
};

class OutlineBuilder {
 public:
  OutlineBuilder(const MemorySnapshot& snapshot, std::size_t device)
      : snapshot_(snapshot), device_(device), sizes_(snapshot.settings) {
    for (std::size_t i = 0; i < snapshot.places.size(); ++i)
      placeOfStack_.emplace(snapshot.places[i].stack, static_cast<std::uint32_t>(i));
  }

  HistoryOutline run() {
    EventLog::Cursor cursor(snapshot_.events[device_]);
    MemoryEvent event;
    for (std::int64_t i = 0; cursor.next(event); ++i) see(event, i);
    seeEnd();
    std::ranges::sort(older_, {}, [](const Candidate& each) { return each.block.address; });
    fitSizes();
    for (const auto& each : older_) outline_.older.push_back(each.block);
    return std::move(outline_);
  }

 private:
  struct Range {
    std::uint64_t end = 0;
    SegmentLife life;
  };

  void see(const MemoryEvent& event, std::int64_t at) {
    switch (event.action) {
      case MemoryAction::alloc:
        ++outline_.allocations;
        if (held_.find(event.address) == AddressMap::none) held_.add(event.address, 0);
        return;
      case MemoryAction::freeCompleted:
        if (held_.find(event.address) != AddressMap::none) return held_.remove(event.address);
        if (known_.find(event.address) != AddressMap::none) return;
        known_.add(event.address, 0);
        older_.push_back({{event.address, sizes_.rounded(event.size), event.size, 0}, at, 0, false});
        return;
      case MemoryAction::segmentAlloc: return open(event, at, false);
      case MemoryAction::segmentMap: return open(event, at, true);
      case MemoryAction::segmentFree: return close(event, at, false);
      case MemoryAction::segmentUnmap: return close(event, at, true);
      default: return;
    }
  }

  void open(const MemoryEvent& event, std::int64_t at, bool expandable) {
    if (event.size == 0 || event.address + event.size < event.address) return;
    ranges_.try_emplace(event.address, Range{event.address + event.size,
                                             {event.address, event.size, event.stream, at, SegmentLife::outside,
                                              expandable, event.size <= allocator::smallSegment, false}});
  }

  /// What is given back of each range that is there, and what was there before the history.
  void close(const MemoryEvent& event, std::int64_t at, bool expandable) {
    const auto end = event.address + event.size;
    if (end <= event.address) return;
    auto covered = event.address;
    auto range = ranges_.upper_bound(event.address);
    if (range != ranges_.begin() && std::prev(range)->second.end > event.address) --range;
    while (range != ranges_.end() && range->first < end) {
      const auto [begin, what] = *range;
      range = ranges_.erase(range);
      if (begin > covered) addOlder(covered, begin, event.stream, at, expandable);
      addPart(what.life, std::max(begin, event.address), std::min(what.end, end), at);
      if (begin < event.address) ranges_.emplace(begin, Range{event.address, what.life});
      if (what.end > end) range = std::next(ranges_.emplace(end, Range{what.end, what.life}).first);
      covered = std::min(what.end, end);
    }
    if (covered < end) addOlder(covered, end, event.stream, at, expandable);
  }

  void addPart(SegmentLife life, std::uint64_t begin, std::uint64_t end, std::int64_t to) {
    life.address = begin;
    life.size = end - begin;
    life.to = to;
    outline_.segments.push_back(life);
  }

  void addOlder(std::uint64_t begin, std::uint64_t end, std::int64_t stream, std::int64_t to, bool expandable) {
    addPart({0, 0, stream, SegmentLife::outside, to, expandable, end - begin <= allocator::smallSegment, false}, begin,
            end, to);
  }

  void seeEnd() {
    for (const auto& segment : snapshot_.segments) {
      if (segment.device != static_cast<std::int64_t>(device_)) continue;
      seeSegmentInTheEnd(segment);
      for (const auto& block : std::span(snapshot_.blocks).subspan(segment.firstBlock, segment.blockCount))
        if (block.state != MemoryBlock::State::inactive && held_.find(block.address) == AddressMap::none)
          older_.push_back({{block.address, block.size, block.requested, placeOf(block.stack)}});
    }
    for (const auto& [begin, range] : ranges_) addPart(range.life, begin, range.end, SegmentLife::outside);
  }

  std::uint32_t placeOf(std::uint32_t stack) const {
    const auto found = placeOfStack_.find(stack);
    return found == placeOfStack_.end() ? 0 : found->second;
  }

  /// Its parts that the history made are known better now, the others are older.
  void seeSegmentInTheEnd(const MemorySegment& segment) {
    const auto end = segment.address + segment.size;
    auto covered = segment.address;
    auto range = ranges_.upper_bound(segment.address);
    if (range != ranges_.begin() && std::prev(range)->second.end > segment.address) --range;
    const SegmentLife life{0,
                           0,
                           segment.stream,
                           SegmentLife::outside,
                           SegmentLife::outside,
                           segment.expandable,
                           segment.small,
                           segment.isPrivate};
    for (; range != ranges_.end() && range->first < end; ++range) {
      range->second.life.small = segment.small;
      range->second.life.isPrivate = segment.isPrivate;
      if (range->first > covered) addPart(life, covered, range->first, SegmentLife::outside);
      covered = std::max(covered, range->second.end);
    }
    if (covered < end) addPart(life, covered, end, SegmentLife::outside);
  }

  /// Only what was asked for is known of a block that the history lets go. It was not cut where the rest was too small;
  /// then what is free behind it is too little for a block, or begins later than it would.
  void fitSizes() {
    std::map<std::uint64_t, std::uint64_t> segments;
    for (const auto& segment : outline_.segments)
      if (segment.from < 0) segments.emplace(segment.address, segment.address + segment.size);
    bool isOpen = false;
    for (std::size_t i = 0; i < older_.size(); ++i) {
      auto& each = older_[i];
      if (each.isExact) continue;
      const auto next = i + 1 < older_.size() ? older_[i + 1].block.address : ~std::uint64_t{0};
      const auto behind = segments.upper_bound(each.block.address);
      if (behind == segments.begin()) continue;
      const auto end = each.block.address + each.block.size, limit = std::min(next, std::prev(behind)->second);
      each.lastStart = next < std::prev(behind)->second ? next : std::prev(behind)->second - 1;
      if (end >= limit || !sizes_.splits(each.block.size, limit - end)) {
        if (limit > each.block.address) each.block.size = limit - each.block.address;
      } else {
        isOpen |= !BlockSizes::small(each.block.size) && !sizes_.expandable();
      }
    }
    if (isOpen) fitToRequests();
  }

  /// What is free behind a block begins where the first request gets a part of it.
  void fitToRequests() {
    EventLog::Cursor cursor(snapshot_.events[device_]);
    MemoryEvent event;
    for (std::int64_t i = 0; cursor.next(event); ++i) {
      if (event.action != MemoryAction::alloc) continue;
      auto* below = heldBelow(event.address, i);
      if (below == nullptr || below->isExact || event.address > below->lastStart) continue;
      const auto end = below->block.address + below->block.size;
      if (event.address < end || event.address - end > allocator::smallSize) continue;
      below->block.size = event.address - below->block.address;
      below->isExact = true;
    }
  }

  /// The next older block below an address that is still held; a few that are gone may be between them.
  Candidate* heldBelow(std::uint64_t address, std::int64_t event) {
    auto at = std::ranges::upper_bound(older_, address, {}, [](const auto& each) { return each.block.address; });
    for (int tries = 0; at != older_.begin() && tries < 16; ++tries)
      if (--at; at->to < 0 || at->to > event) return &*at;
    return nullptr;
  }

  const MemorySnapshot& snapshot_;
  std::size_t device_;
  BlockSizes sizes_;
  HistoryOutline outline_;
  std::vector<Candidate> older_;
  std::map<std::uint64_t, Range> ranges_;                          // that are there, by address
  std::unordered_map<std::uint32_t, std::uint32_t> placeOfStack_;  // the first place of each
  AddressMap held_, known_;  // addresses: what the history made and holds; what it let go unmade
};

}  // namespace

HistoryOutline historyOutline(const MemorySnapshot& snapshot, std::size_t device) {
  return OutlineBuilder(snapshot, device).run();
}

}  // namespace retrograd
