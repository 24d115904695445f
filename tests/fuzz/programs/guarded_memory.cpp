#include "tests/fuzz/programs/guarded_memory.h"

#include <c10/core/Allocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace retrograd::fuzz {
namespace {

constexpr std::size_t guard = 64;  // also LibTorch's alignment
constexpr unsigned char mark = 0xa5;

std::mutex mutex;
std::string damage;

bool isWhole(const unsigned char* bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte == mark; });
}

/// [size, then marks | memory | marks]
void release(void* memory) {
  if (!memory) return;
  auto* bytes = static_cast<unsigned char*>(memory);
  std::size_t size = 0;
  std::memcpy(&size, bytes - guard, sizeof size);
  const bool before = !isWhole(bytes - guard + sizeof size, guard - sizeof size),
             after = !before && !isWhole(bytes + size, guard);
  if (before || after) {
    const std::lock_guard lock(mutex);
    if (damage.empty())
      damage = fmt::format("a kernel wrote {} {} bytes of a tensor", before ? "before" : "behind", size);
  }
  std::free(bytes - guard);
}

struct GuardedMemory : c10::Allocator {
  c10::DataPtr allocate(std::size_t size) override {
    const c10::Device device(c10::kCPU);
    if (size == 0) return {nullptr, nullptr, &release, device};
    void* block = nullptr;
    if (posix_memalign(&block, guard, size + 2 * guard) != 0) throw std::bad_alloc();
    auto* bytes = static_cast<unsigned char*>(block);
    static std::atomic<unsigned char> fill{1};
    std::memset(bytes, mark, guard);
    std::memcpy(bytes, &size, sizeof size);
    std::memset(bytes + guard, fill += 37, size);
    std::memset(bytes + guard + size, mark, guard);
    return {bytes + guard, bytes + guard, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }
};

}  // namespace

void guardMemory() {
  static GuardedMemory memory;
  c10::SetAllocator(c10::kCPU, &memory, 1);
}

std::string takeDamage() {
  const std::lock_guard lock(mutex);
  return std::exchange(damage, {});
}

}  // namespace retrograd::fuzz
