#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace retrograd {

/// What the allocator did, by its own words.
enum class MemoryAction : std::uint8_t {
  alloc,
  freeRequested,
  freeCompleted,
  segmentAlloc,
  segmentFree,
  segmentMap,
  segmentUnmap,
  snapshot,
  outOfMemory,
  other
};
std::string_view name(MemoryAction action);

/// One entry of the history.
struct MemoryEvent {
  MemoryAction action = MemoryAction::other;
  std::uint64_t address = 0;  ///< of outOfMemory: what the device had free
  std::uint64_t size = 0;     ///< of alloc and free what was asked for, before rounding
  std::int64_t stream = 0, time = 0;
  std::uint32_t place = 0;  ///< into MemorySnapshot::places
};

/// Events in order, in a tenth of the memory that they take one by one: each is written as what differs from the one
/// before.
class EventLog {
 public:
  void add(const MemoryEvent& event);
  std::size_t size() const { return count_; }

  /// Reads the events in order. The log must outlive it and stay as it is.
  class Cursor {
   public:
    explicit Cursor(const EventLog& log) : log_(&log) {}
    /// Makes `event` the next one; false at the end. `event` must be as the last call left it, or new.
    bool next(MemoryEvent& event);

   private:
    const EventLog* log_;
    std::size_t chunk_ = 0, at_ = 0;
  };

 private:
  static constexpr std::size_t chunkBytes = std::size_t{1} << 18, longestEvent = 64;
  struct Chunk {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::size_t used = 0;
  };

  std::vector<Chunk> chunks_;
  MemoryEvent last_;
  std::size_t count_ = 0;
};

}  // namespace retrograd
