#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/questions/memory/history_outline.h"
#include "core/questions/memory/memory_place.h"

namespace retrograd {

/// What an allocation is for, from where it was made and where it was let go; never from its size alone.
enum class MemoryCategory : std::uint8_t {
  parameter,   ///< made while a module was made or moved
  gradient,    ///< made by autograd, let go by zero_grad or held when the optimizer steps
  optimizer,   ///< made in an optimizer's step
  activation,  ///< made in the forward, held for the backward
  recompute,   ///< made when a checkpoint runs its forward again
  temporary,   ///< let go in the part of the step that made it
  workspace,   ///< a library's
  kept,        ///< made in the forward, held after the backward
  unknown
};
inline constexpr std::size_t memoryCategoryCount = 9;
std::string_view name(MemoryCategory category);

/// An allocation that was held at the moment that is asked about.
struct HeldAllocation {
  static constexpr std::int64_t outside = -1;  ///< before the first event, or after the last
  std::uint64_t address = 0, size = 0, requested = 0;
  std::int32_t from = outside, to = outside;  ///< events; a window holds millions of these
  std::uint32_t place = 0, freedAt = 0;
  MemoryCategory category = MemoryCategory::unknown;

  bool isHeldAfter(std::int64_t event) const { return from <= event && (to < 0 || to > event); }
};

/// The moment of a history that is asked about; a peak unless an event is named.
struct MemoryMoment {
  std::optional<std::size_t> event;
};

/// A forward with its backward, and what follows up to the next forward.
struct MemoryStep {
  std::int64_t from = 0, forwardEnd = -1, to = -1;  ///< events: its first allocation, the last of its forward, its last
  bool isWhole = false;                             ///< it has a backward
  std::uint64_t startBytes = 0, forwardBytes = 0, peakBytes = 0;  ///< held before it, before its backward, at most
};

/// What a device's allocator held at a moment. Sizes are those of its blocks; their sum is the allocator's own.
struct HeldMemory {
  std::int64_t event = HeldAllocation::outside;  ///< after it
  std::uint64_t bytes = 0, requested = 0;
  std::uint64_t peakBytes = 0, requestedPeakBytes = 0;  ///< of the whole history
  std::int64_t peakEvent = HeldAllocation::outside;
  std::vector<HeldAllocation> allocations;  ///< largest first
  std::size_t events = 0;
  std::uint64_t reservedBytes = 0;  ///< of the segments in the end
  std::uint64_t endBytes = 0;       ///< held in the end, as the snapshot says
  std::vector<HeldAllocation> end;  ///< those of them that the history made
  std::vector<MemoryStep> steps;
  std::vector<SegmentLife> segments;  ///< of the whole history
};

HeldMemory heldMemory(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places,
                      const MemoryMoment& moment = {}, const Progress& progress = {});

/// The same with every allocation of the history, in the order in which they were made; those that are older come
/// first.
HeldMemory wholeHistory(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places,
                        const MemoryMoment& moment = {}, const Progress& progress = {});

/// What a whole history holds after an event, as heldMemory() has it.
HeldMemory heldAfter(const HeldMemory& whole, std::int64_t event);

/// The device that is asked about where none is named: the first with a history, else the first with segments.
std::size_t firstDevice(const MemorySnapshot& snapshot);
/// An event by its number.
std::optional<MemoryEvent> eventAt(const MemorySnapshot& snapshot, std::size_t device, std::int64_t number);
/// The event at which a request failed, the last where a job went on after others; none.
std::optional<std::size_t> outOfMemoryEvent(const MemorySnapshot& snapshot, std::size_t device);

}  // namespace retrograd
