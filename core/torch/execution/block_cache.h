#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace retrograd {

/// Hands out blocks of memory and keeps those that come back, for the next that asks for as many bytes: the kernel
/// fills every page that it maps with zeros first, and for large tensors that takes longer than the ops themselves.
///
/// Blocks in use and kept ones together take at most an eighth more than the most that was in use at once. Safe to call
/// from several threads.
class BlockCache {
 public:
  /// The memory behind the cache.
  struct Source {
    std::function<void*(std::size_t bytes)> allocate;  ///< throws where there is no memory
    std::function<void(void*)> free;
    std::function<std::size_t(void*)> size;      ///< usable bytes of a block, at least what was asked for
    std::function<std::int64_t()> freeOfSystem;  ///< bytes that the process may still take
  };
  /// Bytes and counts of blocks of at least `least` bytes; smaller ones go to the source and back.
  struct Counts {
    std::int64_t inUse = 0, kept = 0;
    std::int64_t peak = 0;              ///< most in use at once since the last release()
    std::size_t reused = 0, fresh = 0;  ///< blocks handed out again, and from the source
  };

  static constexpr std::size_t least = 64 << 10;

  explicit BlockCache(Source source) : source_(std::move(source)) {}
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// A block of at least so many bytes: a kept one of at most an eighth more, else one of the source. Kept blocks go
  /// back first where they would exceed their share, where the system has less than they take, and where the source
  /// has no memory. Throws as the source does.
  void* allocate(std::size_t bytes);
  void free(void* block);
  /// Gives all kept blocks back; the peak begins with what is in use.
  void release();
  Counts counts() const;

 private:
  struct Kept {
    void* block;
    std::uint64_t since;  ///< the least goes first
  };
  using Blocks = std::multimap<std::size_t, Kept>;

  void* reuse(std::size_t bytes);
  void makeRoom(std::size_t bytes);
  void drop(Blocks::iterator block);
  void dropAll();
  void nowInUse(std::size_t bytes);

  const Source source_;
  mutable std::mutex mutex_;
  Blocks kept_;
  Counts counts_;
  std::uint64_t turn_ = 0;
};

}  // namespace retrograd
