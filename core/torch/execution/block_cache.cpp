#include "core/torch/execution/block_cache.h"

#include <algorithm>
#include <new>

namespace retrograd {
namespace {

/// From here on a block is worth asking the system how much is free.
constexpr std::size_t large = 1 << 20;

/// Kept blocks may take an eighth more than the most that was in use: without it a run that still grows gives back what
/// its next op asks for.
constexpr std::int64_t spare = 8;

}  // namespace

void* BlockCache::allocate(std::size_t bytes) {
  if (bytes >= least) {
    const std::lock_guard lock(mutex_);
    if (void* block = reuse(bytes)) return block;
    makeRoom(bytes);
  }
  void* block = nullptr;
  try {
    block = source_.allocate(bytes);
  } catch (const std::exception&) {
    release();
    block = source_.allocate(bytes);
  }
  const auto size = source_.size(block);
  if (size < least) return block;
  const std::lock_guard lock(mutex_);
  ++counts_.fresh;
  nowInUse(size);
  return block;
}

void BlockCache::free(void* block) {
  const auto size = source_.size(block);
  if (size < least) return source_.free(block);
  const std::lock_guard lock(mutex_);
  counts_.inUse -= static_cast<std::int64_t>(size);
  try {
    kept_.emplace(size, Kept{block, turn_++});
    counts_.kept += static_cast<std::int64_t>(size);
  } catch (const std::bad_alloc&) {  // called where a tensor goes: nothing may be thrown
    source_.free(block);
  }
}

void BlockCache::release() {
  const std::lock_guard lock(mutex_);
  dropAll();
  counts_.peak = counts_.inUse;
}

BlockCache::Counts BlockCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void* BlockCache::reuse(std::size_t bytes) {
  const auto found = kept_.lower_bound(bytes);
  if (found == kept_.end() || found->first > bytes + bytes / 8) return nullptr;
  void* block = found->second.block;
  counts_.kept -= static_cast<std::int64_t>(found->first);
  ++counts_.reused;
  nowInUse(found->first);
  kept_.erase(found);
  return block;
}

void BlockCache::makeRoom(std::size_t bytes) {
  if (kept_.empty()) return;
  if (bytes >= large && source_.freeOfSystem() < counts_.kept) return dropAll();
  const auto wanted = counts_.inUse + static_cast<std::int64_t>(bytes);
  const auto most = std::max(wanted, counts_.peak);
  while (!kept_.empty() && wanted + counts_.kept > most + most / spare)
    drop(std::ranges::min_element(kept_, [](const auto& a, const auto& b) { return a.second.since < b.second.since; }));
}

void BlockCache::drop(Blocks::iterator block) {
  counts_.kept -= static_cast<std::int64_t>(block->first);
  source_.free(block->second.block);
  kept_.erase(block);
}

void BlockCache::dropAll() {
  while (!kept_.empty()) drop(kept_.begin());
}

void BlockCache::nowInUse(std::size_t bytes) {
  counts_.inUse += static_cast<std::int64_t>(bytes);
  counts_.peak = std::max(counts_.peak, counts_.inUse);
}

}  // namespace retrograd
