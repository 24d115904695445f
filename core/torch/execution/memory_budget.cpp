#include "core/torch/execution/memory_budget.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "core/base/allowed_memory.h"
#include "core/base/error.h"
#include "core/base/out_of_memory.h"
#include "core/base/user_choice.h"
#include "core/torch/execution/block_cache.h"

namespace retrograd {
namespace {

thread_local MemoryBudget* innermost = nullptr;

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// A file with a number, as control groups have them; unlimited where there is none.
std::int64_t numberOf(const char* path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? number : unlimited;
}

std::int64_t availableOfMachine() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t kilobytes = 0;
    if (words >> name >> kilobytes && name == "MemAvailable:") return kilobytes * 1024;
  }
  return unlimited;
}

/// LibTorch's error for it has no type of its own, and its callers take it for the refusal of an op.
void* allocated(std::size_t bytes) {
  try {
    return c10::alloc_cpu(bytes);
  } catch (const c10::Error&) {
    throw OutOfMemory(fmt::format("not enough memory: {} bytes more are not there", bytes));
  }
}

std::int64_t freeOfSystem() {
  const auto most = numberOf("/sys/fs/cgroup/memory.max");
  const auto now = most == unlimited ? 0 : numberOf("/sys/fs/cgroup/memory.current");
  return std::min(availableOfMachine(), std::max<std::int64_t>(most - now, 0));
}

/// Never destroyed: tensors of static objects outlive everything that could be.
BlockCache& cache() {
  static auto* blocks = new BlockCache(
      {&allocated, &c10::free_cpu, [](void* block) { return malloc_usable_size(block); }, &freeOfSystem});
  return *blocks;
}

}  // namespace

/// LibTorch's own CPU allocator behind a cache, with the budget of the thread before it. It reports to the profiler as
/// that does.
class BudgetedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* budget = innermost;
    if (budget) require(*budget, bytes);
    void* data = cache().allocate(bytes);
    c10::profiledCPUMemoryReporter().New(data, bytes);
    if (budget) budget->used_ += static_cast<std::int64_t>(malloc_usable_size(data));
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static void require(const MemoryBudget& budget, std::size_t bytes) {
    const auto wanted = static_cast<std::int64_t>(std::min<std::size_t>(bytes, unlimited));
    const auto left = budget.limit_ - std::min(budget.used_, budget.limit_);
    if (wanted <= left) {
      if (cache().counts().kept > left - wanted) cache().release();  // kept memory comes out of the budget, too
      return;
    }
    throw Error(
        ErrorCode::execution,
        fmt::format(
            "opening the model would allocate more than {:.1f} GiB ({:.1f} GiB for this op): allow more with {}",
            static_cast<double>(budget.limit_) / (1 << 30), static_cast<double>(wanted) / (1 << 30),
            nameOf(UserChoice::openingMemory)));
  }
  static void release(void* data) {
    if (!data) return;
    if (innermost) innermost->used_ -= static_cast<std::int64_t>(malloc_usable_size(data));
    c10::profiledCPUMemoryReporter().Delete(data);
    cache().free(data);
  }
};

namespace {

/// Before there are threads that allocate.
[[maybe_unused]] const bool installed = [] {
  static BudgetedAllocator allocator;
  c10::SetCPUAllocator(&allocator, 1);
  return true;
}();

}  // namespace

MemoryBudget::MemoryBudget(std::int64_t bytes) : limit_(bytes), outer_(innermost) { innermost = this; }

MemoryBudget::~MemoryBudget() {
  innermost = outer_;
  if (outer_) outer_->used_ += used_;
}

std::int64_t freeMemory() { return freeOfSystem() + cache().counts().kept; }

TensorMemory tensorMemory() {
  const auto counts = cache().counts();
  return {counts.inUse, counts.kept, counts.peak};
}

void releaseKeptMemory() {
  cache().release();
  malloc_trim(0);
}

std::int64_t openingMemory(std::uint64_t fileBytes) {
  if (const auto asked = chosenOpeningMemory()) return *asked;
  return freeMemory() / 4 + static_cast<std::int64_t>(fileBytes);
}

}  // namespace retrograd
