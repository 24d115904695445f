#include "core/questions/memory/held_memory.h"

#include <algorithm>
#include <functional>

#include "core/base/enum_array.h"
#include "core/questions/memory/block_map.h"
#include "core/questions/memory/memory_category.h"

namespace retrograd {
namespace {

struct Sum {
  std::uint64_t now = 0, most = 0;

  void add(std::uint64_t bytes) { most = std::max(most, now += bytes); }
};

/// Finds where steps begin and what is held in them.
class StepWatch {
 public:
  /// An allocation with what is held before and after it.
  void see(StepPart part, std::size_t event, std::uint64_t before, std::uint64_t bytes) {
    const auto at = static_cast<std::int64_t>(event);
    if (part == StepPart::forward && (steps_.empty() || goesBack_)) {
      if (!steps_.empty()) steps_.back().to = at - 1;
      steps_.push_back({.from = at, .startBytes = before});
      goesBack_ = false;
    }
    if (steps_.empty()) return;
    auto& step = steps_.back();
    step.peakBytes = std::max(step.peakBytes, bytes);
    if (goesBack_) return;
    if (part == StepPart::backward || part == StepPart::recompute) {
      goesBack_ = step.isWhole = true;
      step.forwardBytes = before;
    } else if (part == StepPart::forward) {
      step.forwardEnd = at;
      step.forwardBytes = bytes;
    }
  }

  /// `end`: one past the last event.
  std::vector<MemoryStep> steps(std::int64_t end) && {
    if (!steps_.empty()) steps_.back().to = end - 1;
    return std::move(steps_);
  }

 private:
  std::vector<MemoryStep> steps_;
  bool goesBack_ = false;
};

void sortBySize(std::vector<HeldAllocation>& allocations) {
  std::ranges::stable_sort(allocations, std::greater(), &HeldAllocation::size);
}

class HistoryWalk {
 public:
  HistoryWalk(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places,
              const MemoryMoment& moment, bool whole)
      : snapshot_(snapshot),
        device_(device),
        outline_(historyOutline(snapshot, device)),
        blocks_(snapshot.settings, outline_),
        evidence_(snapshot, device, places),
        moment_(moment),
        whole_(whole) {}

  HeldMemory run(const Progress& progress) {
    const auto& log = snapshot_.events[device_];
    blocks_.forEachHeld([&](const HeldBlock& block) {
      bytes_.add(block.size);
      requested_.add(block.requested);
    });
    choose(HeldAllocation::outside);
    if (whole_) released_.reserve(outline_.allocations + outline_.older.size());
    EventLog::Cursor cursor(log);
    MemoryEvent event;
    constexpr std::size_t steps = 1 << 16;
    for (; cursor.next(event); ++index_) {
      if (index_ % steps == 0)
        progress.at("replaying the history", static_cast<double>(index_) / static_cast<double>(log.size()));
      step(event);
      if (moment_.event && index_ == *moment_.event) choose(static_cast<std::int64_t>(index_));
    }
    answer_.events = index_;
    finish();
    return std::move(answer_);
  }

 private:
  void step(const MemoryEvent& event) {
    evidence_.see(event, index_);
    switch (event.action) {
      case MemoryAction::alloc: return allocate(event);
      case MemoryAction::freeCompleted: return release(event);
      case MemoryAction::segmentAlloc: return blocks_.addSegment(event.address, event.size);
      case MemoryAction::segmentFree: return blocks_.removeSegment(event.address);
      case MemoryAction::segmentMap: return blocks_.map(event.address, event.size);
      case MemoryAction::segmentUnmap: return blocks_.unmap(event.address, event.size);
      default: return;
    }
  }

  void allocate(const MemoryEvent& event) {
    if (blocks_.holds(event.address)) release(event);  // the history lacks that it was let go
    const auto before = bytes_.now, most = bytes_.most;
    bytes_.add(blocks_.allocate(event, static_cast<std::uint32_t>(index_)).size);
    requested_.add(event.size);
    steps_.see(evidence_.partOf(event), index_, before, bytes_.now);
    if (bytes_.most == most) return;
    answer_.peakEvent = static_cast<std::int64_t>(index_);
    if (!moment_.event) choose(answer_.peakEvent);
  }

  /// The present moment, after `event`, is the one that is asked about, as far as is known.
  void choose(std::int64_t event) {
    answer_.event = event;
    answer_.bytes = bytes_.now;
    answer_.requested = requested_.now;
    if (!whole_) released_.clear();
  }

  void release(const MemoryEvent& event) {
    const auto* block = blocks_.release(event.address);
    if (block == nullptr) return;
    auto allocation = allocationOf(*block);
    bytes_.now -= allocation.size;
    requested_.now -= allocation.requested;
    const bool isAfter = moment_.event ? index_ > *moment_.event : true;
    if (!whole_ && (!isAfter || allocation.from > answer_.event)) return;
    allocation.to = static_cast<std::int32_t>(index_);
    allocation.freedAt = event.place;
    released_.push_back(allocation);
  }

  static HeldAllocation allocationOf(const HeldBlock& block) {
    HeldAllocation allocation;
    allocation.address = block.address;
    allocation.size = block.size;
    allocation.requested = block.requested;
    allocation.from =
        block.event == HeldBlock::older ? HeldAllocation::outside : static_cast<std::int32_t>(block.event);
    allocation.place = block.place;
    return allocation;
  }

  void finish() {
    answer_.allocations = std::move(released_);
    blocks_.forEachHeld([&](const HeldBlock& block) {
      const auto allocation = allocationOf(block);
      if (allocation.from >= 0) answer_.end.push_back(allocation);
      if (whole_ || allocation.from <= answer_.event) answer_.allocations.push_back(allocation);
    });
    bool hasSegments = false;
    for (const auto& segment : snapshot_.segments) {
      if (segment.device != static_cast<std::int64_t>(device_)) continue;
      hasSegments = true;
      answer_.reservedBytes += segment.size;
      for (const auto& block : std::span(snapshot_.blocks).subspan(segment.firstBlock, segment.blockCount))
        if (block.state != MemoryBlock::State::inactive) answer_.endBytes += block.size;
    }
    if (!hasSegments) answer_.endBytes = bytes_.now;  // cudaMallocAsync: the driver's own pool
    answer_.peakBytes = bytes_.most;
    answer_.requestedPeakBytes = requested_.most;
    evidence_.classify(answer_.allocations);
    evidence_.classify(answer_.end);
    answer_.steps = std::move(steps_).steps(static_cast<std::int64_t>(index_));
    answer_.segments = std::move(outline_.segments);
    if (whole_)  // in place
      std::ranges::sort(answer_.allocations, {}, [](const auto& each) { return std::pair(each.from, each.address); });
    else sortBySize(answer_.allocations);
  }

  const MemorySnapshot& snapshot_;
  std::size_t device_;
  HistoryOutline outline_;
  BlockMap blocks_;
  CategoryEvidence evidence_;
  MemoryMoment moment_;
  bool whole_;
  HeldMemory answer_;
  Sum bytes_, requested_;
  StepWatch steps_;
  std::size_t index_ = 0;
  std::vector<HeldAllocation> released_;  // held at the chosen moment, and let go since; of a whole history all
};

}  // namespace

std::string_view name(MemoryCategory category) {
  static constexpr EnumArray<MemoryCategory, std::string_view, memoryCategoryCount> names{
      "parameter", "gradient", "optimizer", "activation", "recompute", "temporary", "workspace", "kept", "unknown"};
  return names[category];
}

HeldMemory heldMemory(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places,
                      const MemoryMoment& moment, const Progress& progress) {
  return HistoryWalk(snapshot, device, places, moment, false).run(progress);
}

HeldMemory wholeHistory(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places,
                        const MemoryMoment& moment, const Progress& progress) {
  return HistoryWalk(snapshot, device, places, moment, true).run(progress);
}

HeldMemory heldAfter(const HeldMemory& whole, std::int64_t event) {
  HeldMemory held;
  held.event = event;
  for (const auto& allocation : whole.allocations) {
    if (!allocation.isHeldAfter(event)) continue;
    held.bytes += allocation.size;
    held.requested += allocation.requested;
    held.allocations.push_back(allocation);
  }
  sortBySize(held.allocations);
  held.peakBytes = whole.peakBytes;
  held.requestedPeakBytes = whole.requestedPeakBytes;
  held.peakEvent = whole.peakEvent;
  held.events = whole.events;
  held.reservedBytes = whole.reservedBytes;
  held.endBytes = whole.endBytes;
  held.end = whole.end;
  held.steps = whole.steps;
  held.segments = whole.segments;
  return held;
}

std::size_t firstDevice(const MemorySnapshot& snapshot) {
  for (std::size_t i = 0; i < snapshot.events.size(); ++i)
    if (snapshot.events[i].size() > 0) return i;
  const auto first = std::ranges::min_element(snapshot.segments, {}, &MemorySegment::device);
  if (first == snapshot.segments.end() || first->device < 0) return 0;
  return std::min(static_cast<std::size_t>(first->device), snapshot.events.size() - 1);
}

std::optional<MemoryEvent> eventAt(const MemorySnapshot& snapshot, std::size_t device, std::int64_t number) {
  EventLog::Cursor cursor(snapshot.events[device]);
  MemoryEvent event;
  for (std::int64_t i = 0; cursor.next(event); ++i)
    if (i == number) return event;
  return std::nullopt;
}

std::optional<std::size_t> outOfMemoryEvent(const MemorySnapshot& snapshot, std::size_t device) {
  EventLog::Cursor cursor(snapshot.events[device]);
  MemoryEvent event;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; cursor.next(event); ++i)
    if (event.action == MemoryAction::outOfMemory) last = i;
  return last;
}

}  // namespace retrograd
