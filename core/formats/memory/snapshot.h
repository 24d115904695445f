#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/string_table.h"
#include "core/formats/files/byte_stream.h"

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

/// A line of Python (or of C++) that was running.
struct MemoryFrame {
  StringId function, file;
  std::int32_t line = 0;
  StringId node;  ///< the node of a torch.fx graph that the line computes, where PyTorch knows

  bool operator==(const MemoryFrame&) const = default;
};

/// Where an event came from: a stack, and what PyTorch knew besides.
struct MemoryPlace {
  std::uint32_t stack = 0;
  StringId compile, note;  ///< the compile ("0/0") and the person's metadata; none where there was none

  bool operator==(const MemoryPlace&) const = default;
};

/// A part of a segment, in use or free, when the snapshot was taken.
struct MemoryBlock {
  enum class State : std::uint8_t { inactive, active, awaitingFree };
  std::uint64_t address = 0, size = 0, requested = 0;
  State state = State::inactive;
  std::uint32_t stack = 0;
};

/// Memory that the allocator has from the driver.
struct MemorySegment {
  std::int64_t device = 0, stream = 0;
  std::uint64_t address = 0, size = 0;
  bool small = false, expandable = false;
  bool isPrivate = false;                      ///< of a pool of its own, as a CUDA graph or a MemPool has
  std::size_t firstBlock = 0, blockCount = 0;  ///< in MemorySnapshot::blocks
};

/// The begin or the end of what PyTorch itself marks, such as "Optimizer.step#AdamW.step".
struct MemoryMark {
  std::int64_t device = 0, time = 0;
  bool begins = false;
  StringId name;
};

struct AllocatorSettings {
  StringId text;  ///< PYTORCH_CUDA_ALLOC_CONF
  std::int64_t maxSplitSize = -1;
  bool expandableSegments = false;
  std::array<std::uint32_t, 16> divisions{};  ///< of each power of two from 1 MiB on; 0: sizes are not rounded that way
};

/// What torch.cuda.memory._snapshot() gives: all of it, compactly.
struct MemorySnapshot {
  StringTable strings;
  std::vector<MemoryFrame> frames;
  std::vector<std::uint32_t> stackFrames;        ///< of all stacks, innermost frame first
  std::vector<std::uint32_t> stackStarts{0, 0};  ///< stack i is [i, i + 1); stack 0 is empty
  std::vector<MemoryPlace> places;
  std::vector<MemorySegment> segments;
  std::vector<MemoryBlock> blocks;
  std::vector<EventLog> events;  ///< of each device
  std::vector<MemoryMark> marks;
  AllocatorSettings settings;

  std::span<const std::uint32_t> stack(std::uint32_t id) const {
    return std::span(stackFrames).subspan(stackStarts[id], stackStarts[id + 1] - stackStarts[id]);
  }
  std::string_view text(StringId id) const { return strings.text(id); }
};

/// Reads a snapshot as PyTorch pickles it, without running anything of it, in one pass and in memory that is a fraction
/// of the file's. Throws Error(badInput).
MemorySnapshot readMemorySnapshot(ByteStream& stream, const Progress& progress = {});
/// The same of a file, which may be compressed (.gz, .xz).
std::unique_ptr<const MemorySnapshot> openMemorySnapshot(const std::string& path, const Progress& progress = {});

}  // namespace retrograd
