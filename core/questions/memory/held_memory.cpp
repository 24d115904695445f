#include "core/questions/memory/held_memory.h"

#include <algorithm>
#include <functional>

#include "core/base/enum_array.h"
#include "core/questions/memory/block_map.h"
#include "core/questions/memory/memory_category.h"

namespace retrograd {
namespace {

/// A sum that begins with an unknown number: what was held before the first event, which the end of the history says.
struct RelativeSum {
  std::int64_t now = 0, most = 0;
};

/// Finds where steps begin and what is held in them.
class StepWatch {
 public:
  /// An allocation with what is held before and after it.
  void see(StepPart part, std::size_t event, std::int64_t before, std::int64_t bytes) {
    const auto at = static_cast<std::int64_t>(event);
    if (part == StepPart::forward && (steps_.empty() || goesBack_)) {
      steps_.push_back({{.from = at}, before, bytes, bytes});
      goesBack_ = false;
    }
    if (steps_.empty()) return;
    auto& step = steps_.back();
    step.most = std::max(step.most, bytes);
    if (goesBack_) return;
    if (part == StepPart::backward || part == StepPart::recompute) {
      goesBack_ = step.what.isWhole = true;
      step.forward = before;
    } else if (part == StepPart::forward) {
      step.what.forwardEnd = at;
      step.forward = bytes;
    }
  }

  /// `before`: bytes that were held before the history.
  std::vector<MemoryStep> steps(std::int64_t before, std::int64_t end) const {
    std::vector<MemoryStep> found;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto sum = [&](std::int64_t bytes) {
        return static_cast<std::uint64_t>(std::max<std::int64_t>(before + bytes, 0));
      };
      auto step = steps_[i].what;
      step.startBytes = sum(steps_[i].start);
      step.forwardBytes = sum(steps_[i].forward);
      step.peakBytes = sum(steps_[i].most);
      step.to = i + 1 < steps_.size() ? steps_[i + 1].what.from - 1 : end - 1;
      found.push_back(step);
    }
    return found;
  }

 private:
  struct Step {
    MemoryStep what;
    std::int64_t start = 0, forward = 0, most = 0;
  };

  std::vector<Step> steps_;
  bool goesBack_ = false;
};

class HistoryWalk {
 public:
  HistoryWalk(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places,
              const MemoryMoment& moment, bool whole)
      : snapshot_(snapshot),
        device_(device),
        blocks_(snapshot.settings),
        evidence_(snapshot, device, places),
        moment_(moment),
        whole_(whole) {}

  HeldMemory run(const Progress& progress) {
    const auto& log = snapshot_.events[device_];
    expectBlocks();
    EventLog::Cursor cursor(log);
    MemoryEvent event;
    constexpr std::size_t steps = 1 << 16;
    for (; cursor.next(event); ++index_) {
      if (index_ % steps == 0)
        progress.at("replaying the history", static_cast<double>(index_) / static_cast<double>(log.size()));
      step(event);
      if (moment_.event && index_ == *moment_.event) {
        choose();
        answer_.free = blocks_.free();
      }
    }
    answer_.events = index_;
    finish();
    return std::move(answer_);
  }

 private:
  void expectBlocks() {
    for (const auto& segment : snapshot_.segments)
      if (segment.device == static_cast<std::int64_t>(device_))
        for (const auto& block : std::span(snapshot_.blocks).subspan(segment.firstBlock, segment.blockCount))
          if (block.state != MemoryBlock::State::inactive) blocks_.expectBlock(block);
  }

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
    const auto& block = blocks_.allocate(event, static_cast<std::uint32_t>(index_));
    bytes_.now += static_cast<std::int64_t>(block.size);
    requested_.now += static_cast<std::int64_t>(event.size);
    requested_.most = std::max(requested_.most, requested_.now);
    steps_.see(evidence_.partOf(event), index_, bytes_.now - static_cast<std::int64_t>(block.size), bytes_.now);
    if (bytes_.now <= bytes_.most) return;
    bytes_.most = bytes_.now;
    answer_.peakEvent = static_cast<std::int64_t>(index_);
    if (!moment_.event) choose();
  }

  /// The present moment is the one that is asked about, as far as is known.
  void choose() {
    chosen_ = static_cast<std::int64_t>(index_);
    chosenBytes_ = bytes_.now;
    chosenRequested_ = requested_.now;
    if (!whole_) released_.clear();
  }

  void release(const MemoryEvent& event) {
    HeldAllocation allocation;
    if (const auto* block = blocks_.release(event.address)) {
      allocation = allocationOf(*block);
    } else {
      allocation.address = event.address;
      allocation.size = blocks_.sizes().rounded(event.size);
      allocation.requested = event.size;
      ++answer_.unmatchedFrees;
    }
    bytes_.now -= static_cast<std::int64_t>(allocation.size);
    requested_.now -= static_cast<std::int64_t>(allocation.requested);
    const bool isAfter = moment_.event ? index_ > *moment_.event : true;
    if (!whole_ && (!isAfter || allocation.from > chosen_)) return;
    allocation.to = static_cast<std::int64_t>(index_);
    allocation.freedAt = event.place;
    released_.push_back(allocation);
  }

  static HeldAllocation allocationOf(const HeldBlock& block) {
    HeldAllocation allocation;
    allocation.address = block.address;
    allocation.size = block.size;
    allocation.requested = block.requested;
    allocation.from = block.event;
    allocation.place = block.place;
    return allocation;
  }

  void finish() {
    std::int64_t end = 0, endRequested = 0;
    answer_.allocations = std::move(released_);
    blocks_.forEachHeld([&](const HeldBlock& block) {
      answer_.end.push_back(allocationOf(block));
      if (whole_ || static_cast<std::int64_t>(block.event) <= chosen_)
        answer_.allocations.push_back(allocationOf(block));
    });
    bool hasSegments = false;
    for (const auto& segment : snapshot_.segments) {
      if (segment.device != static_cast<std::int64_t>(device_)) continue;
      hasSegments = true;
      answer_.reservedBytes += segment.size;
      for (const auto& block : std::span(snapshot_.blocks).subspan(segment.firstBlock, segment.blockCount)) {
        if (block.state == MemoryBlock::State::inactive) continue;
        end += static_cast<std::int64_t>(block.size);
        endRequested += static_cast<std::int64_t>(block.requested);
        if (!blocks_.holds(block.address)) addOlder(block);
      }
    }
    if (!hasSegments) end = bytes_.now, endRequested = requested_.now;  // cudaMallocAsync: the driver's own pool
    const auto before = end - bytes_.now, requestedBefore = endRequested - requested_.now;
    const auto sum = [](std::int64_t a, std::int64_t b) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(a + b, 0));
    };
    answer_.endBytes = static_cast<std::uint64_t>(end);
    answer_.peakBytes = sum(before, bytes_.most);
    answer_.requestedPeakBytes = sum(requestedBefore, requested_.most);
    answer_.event = chosen_;
    answer_.bytes = sum(before, chosenBytes_);
    answer_.requested = sum(requestedBefore, chosenRequested_);
    evidence_.classify(answer_.allocations);
    evidence_.classify(answer_.end);
    answer_.steps = steps_.steps(before, static_cast<std::int64_t>(index_));
    if (whole_) std::ranges::stable_sort(answer_.allocations, {}, &HeldAllocation::from);
    else std::ranges::stable_sort(answer_.allocations, std::greater(), &HeldAllocation::size);
  }

  /// Held in the end, and made before the history begins.
  void addOlder(const MemoryBlock& block) {
    HeldAllocation allocation;
    allocation.address = block.address;
    allocation.size = block.size;
    allocation.requested = block.requested;
    allocation.place = evidence_.placeOfStack(block.stack);
    answer_.allocations.push_back(allocation);
  }

  const MemorySnapshot& snapshot_;
  std::size_t device_;
  BlockMap blocks_;
  CategoryEvidence evidence_;
  MemoryMoment moment_;
  bool whole_;
  HeldMemory answer_;
  RelativeSum bytes_, requested_;
  StepWatch steps_;
  std::size_t index_ = 0;
  std::int64_t chosen_ = HeldAllocation::outside, chosenBytes_ = 0, chosenRequested_ = 0;
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

std::size_t firstDevice(const MemorySnapshot& snapshot) {
  for (std::size_t i = 0; i < snapshot.events.size(); ++i)
    if (snapshot.events[i].size() > 0) return i;
  const auto first = std::ranges::min_element(snapshot.segments, {}, &MemorySegment::device);
  if (first == snapshot.segments.end() || first->device < 0) return 0;
  return std::min(static_cast<std::size_t>(first->device), snapshot.events.size() - 1);
}

std::optional<std::size_t> outOfMemoryEvent(const MemorySnapshot& snapshot, std::size_t device) {
  EventLog::Cursor cursor(snapshot.events[device]);
  MemoryEvent event;
  for (std::size_t i = 0; cursor.next(event); ++i)
    if (event.action == MemoryAction::outOfMemory) return i;
  return std::nullopt;
}

}  // namespace retrograd
