#pragma once
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/questions/memory/history_outline.h"

namespace retrograd {

/// PyTorch's caching allocator on paper: requests go to the smallest free block that holds them, of the pool of small
/// or of large ones and of the stream; a block is cut where the rest is worth it, and joined with free neighbours when
/// it is let go. What no free block holds comes from the driver.
class AllocatorModel {
 public:
  explicit AllocatorModel(const AllocatorSettings& settings) : sizes_(settings) {}

  /// What is there before the first request.
  void begin(const HistoryOutline& outline);
  /// Where the driver puts the next segment, or the first part of an expandable one, of this size and stream; without
  /// it the model invents an address.
  void expectSegment(std::uint64_t size, std::int64_t stream, std::uint64_t address);
  /// The address of the block that the request gets.
  std::uint64_t allocate(std::uint64_t requested, std::int64_t stream);
  void release(std::uint64_t address);
  /// Gives a segment back to the driver, where all of it is free.
  void giveBack(std::uint64_t address);

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t reserved() const { return reserved_; }
  std::uint64_t peakBytes() const { return peakBytes_; }
  std::uint64_t peakReserved() const { return peakReserved_; }

 private:
  struct Pool {
    std::int64_t stream = 0;
    bool small = false;
    auto operator<=>(const Pool&) const = default;
  };
  struct Block {
    std::uint64_t size = 0;
    std::uint64_t segment = 0;  ///< address of the segment's first block
    bool held = false;
    Pool pool;
  };
  using Blocks = std::map<std::uint64_t, Block>;

  std::optional<std::uint64_t> freeBlock(const Pool& pool, std::uint64_t size) const;
  std::uint64_t newSegment(const Pool& pool, std::uint64_t rounded);
  /// The same where segments are expandable: memory is mapped behind what the pool's segment has.
  std::uint64_t grow(const Pool& pool, std::uint64_t rounded);
  std::uint64_t placeOfSegment(std::uint64_t size, std::int64_t stream);
  void cut(std::uint64_t address, std::uint64_t size);
  void hold(const OlderBlock& older);
  bool areJoinable(const Blocks::iterator& first, const Blocks::iterator& second) const;
  std::set<std::pair<std::uint64_t, std::uint64_t>>& freeOf(const Pool& pool) { return free_[pool]; }

  /// An expandable segment: where it begins, and what is mapped of it ends.
  struct Grown {
    std::uint64_t begin = 0, end = 0;
  };

  BlockSizes sizes_;
  std::map<Pool, Grown> grown_;
  Blocks blocks_;                                                                          // by address
  std::map<Pool, std::set<std::pair<std::uint64_t, std::uint64_t>>> free_;                 // by size, then address
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<std::uint64_t>> expected_;  // the next one last
  std::uint64_t bytes_ = 0, reserved_ = 0, peakBytes_ = 0, peakReserved_ = 0, invented_ = std::uint64_t{1} << 60;
};

/// One request or release of a history, by the number of its allocation.
struct AllocatorRequest {
  enum class Kind : std::uint8_t { allocate, release, giveBack };
  Kind kind = Kind::allocate;
  std::uint32_t allocation = 0;
  std::uint64_t size = 0;  ///< what is asked for; of giveBack the segment's address
  std::int64_t stream = 0;
};

/// A history as requests alone, without the addresses that they got.
struct AllocatorRequests {
  HistoryOutline outline;  ///< what it begins with: its older blocks are the first allocations
  std::vector<AllocatorRequest> requests;
  std::vector<std::int64_t> events;      ///< of each request
  std::vector<std::uint64_t> addresses;  ///< that each allocation got in fact
  std::vector<std::int64_t> madeAt;      ///< of each allocation: its event
};
AllocatorRequests allocatorRequests(const MemorySnapshot& snapshot, std::size_t device);

/// What the model makes of requests.
struct ModelledMemory {
  std::uint64_t peakBytes = 0, peakReserved = 0, endBytes = 0;
  std::size_t allocations = 0, atTheirAddress = 0;  ///< how many of them got the address that they had in fact
};
ModelledMemory modelledMemory(const MemorySnapshot& snapshot, std::size_t device, const AllocatorRequests& requests);

}  // namespace retrograd
