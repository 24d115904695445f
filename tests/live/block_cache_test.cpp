// Memory of tensors that is kept to be handed out again.
#include "core/torch/execution/block_cache.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <vector>

#include "core/torch/execution/memory_budget.h"

namespace retrograd {
namespace {

constexpr std::size_t mebibyte = 1 << 20;

/// Memory that counts what was taken from it and has no more than `limit` bytes.
struct FakeSource {
  std::map<void*, std::size_t> blocks;
  std::size_t allocations = 0, held = 0, limit = SIZE_MAX;
  std::int64_t freeOfSystem = INT64_MAX;

  BlockCache::Source source() {
    return {[this](std::size_t bytes) {
              if (bytes > limit - held) throw std::bad_alloc();
              void* block = ::operator new(1);
              blocks[block] = bytes;
              held += bytes;
              ++allocations;
              return block;
            },
            [this](void* block) {
              held -= blocks.at(block);
              blocks.erase(block);
              ::operator delete(block);
            },
            [this](void* block) { return blocks.at(block); }, [this] { return freeOfSystem; }};
  }
};

TEST(BlockCache, ABlockIsHandedOutAgain) {
  FakeSource memory;
  BlockCache cache(memory.source());
  void* const first = cache.allocate(mebibyte);
  cache.free(first);
  EXPECT_EQ(cache.allocate(mebibyte), first);
  cache.free(first);
  EXPECT_EQ(cache.allocate(mebibyte - mebibyte / 16), first);  // a little smaller
  EXPECT_EQ(memory.allocations, 1u);
  EXPECT_EQ(cache.counts().reused, 2u);
  cache.free(first);
  cache.free(cache.allocate(mebibyte / 2));  // too much of it would lie idle
  EXPECT_EQ(cache.counts().reused, 2u);
  EXPECT_EQ(cache.counts().fresh, 2u);
  cache.release();
  EXPECT_EQ(memory.held, 0u);
}

TEST(BlockCache, KeptAndUsedMemoryStayWithinAnEighthMoreThanThePeak) {
  FakeSource memory;
  BlockCache cache(memory.source());
  std::mt19937_64 bits(1);
  std::vector<void*> used;
  std::size_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (used.empty() || bits() % 2) {
      used.push_back(cache.allocate(BlockCache::least + bits() % (4 * mebibyte)));
    } else {
      std::swap(used[bits() % used.size()], used.back());
      cache.free(used.back());
      used.pop_back();
    }
    const auto counts = cache.counts();
    most = std::max<std::size_t>(most, counts.inUse);
    ASSERT_EQ(memory.held, static_cast<std::size_t>(counts.inUse + counts.kept));
    ASSERT_EQ(most, static_cast<std::size_t>(counts.peak));
    ASSERT_LE(memory.held, most + most / 8);
  }
  EXPECT_GT(cache.counts().reused, 1000u);
  for (void* block : used) cache.free(block);
  cache.release();
  EXPECT_EQ(memory.held, 0u);
  EXPECT_EQ(cache.counts().peak, 0);
}

TEST(BlockCache, KeptMemoryGoesBackWhereTheSystemNeedsIt) {
  FakeSource memory;
  BlockCache cache(memory.source());
  cache.free(cache.allocate(8 * mebibyte));
  memory.freeOfSystem = 4 * mebibyte;
  void* const block = cache.allocate(mebibyte);
  EXPECT_EQ(cache.counts().kept, 0);
  EXPECT_EQ(memory.held, mebibyte);
  cache.free(block);
  cache.release();
}

TEST(BlockCache, KeptMemoryGoesBackBeforeAnAllocationFails) {
  FakeSource memory;
  memory.limit = 9 * mebibyte;
  BlockCache cache(memory.source());
  void* const large = cache.allocate(8 * mebibyte);
  cache.free(large);
  void* const small = cache.allocate(2 * mebibyte);  // 8 MiB kept and 2 MiB more are not there
  EXPECT_EQ(memory.held, 2 * mebibyte);
  EXPECT_THROW(cache.allocate(8 * mebibyte), std::bad_alloc);
  cache.free(small);
  cache.release();
}

TEST(BlockCache, SmallBlocksGoBackAtOnce) {
  FakeSource memory;
  BlockCache cache(memory.source());
  cache.free(cache.allocate(BlockCache::least - 1));
  EXPECT_EQ(memory.held, 0u);
  EXPECT_EQ(cache.counts().fresh, 0u);
}

std::int64_t bytesOf(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

TEST(TensorMemory, ATensorsMemoryIsHandedOutAgainAndGivenBack) {
  releaseKeptMemory();
  const auto before = tensorMemory();
  auto tensor = at::empty({static_cast<std::int64_t>(mebibyte)}, at::kFloat);
  const void* const memory = tensor.data_ptr();
  EXPECT_GE(tensorMemory().inUse - before.inUse, bytesOf(tensor));
  tensor.reset();
  EXPECT_GE(tensorMemory().kept, static_cast<std::int64_t>(4 * mebibyte));
  tensor = at::empty({static_cast<std::int64_t>(mebibyte)}, at::kFloat);
  EXPECT_EQ(tensor.data_ptr(), memory);
  tensor.reset();
  releaseKeptMemory();
  EXPECT_EQ(tensorMemory().kept, 0);
  EXPECT_EQ(tensorMemory().inUse, before.inUse);
}

TEST(TensorMemory, KeptMemoryComesOutOfABudget) {
  releaseKeptMemory();
  at::empty({8 << 20}, at::kByte).reset();
  ASSERT_GE(tensorMemory().kept, 8 << 20);
  const MemoryBudget budget(12 << 20);
  const auto tensor = at::empty({5 << 20}, at::kByte);
  EXPECT_LE(tensorMemory().kept, 7 << 20);
}

}  // namespace
}  // namespace retrograd
