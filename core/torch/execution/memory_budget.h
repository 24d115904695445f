#pragma once
#include <cstdint>

namespace retrograd {

/// While it lives, what this thread allocates through LibTorch's CPU allocator may grow by so many bytes; an op that
/// wants more ends with Error(execution) that names the budget, before the memory is taken. Scopes nest: the innermost
/// holds.
///
/// Opening a model may run ops (values drawn for its inputs, control flow that depends on data), and sizes come from
/// the file. So opening has a budget; running, which was asked for, has none.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::int64_t bytes);
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

 private:
  friend class BudgetedAllocator;
  std::int64_t limit_, used_ = 0;
  MemoryBudget* outer_;
};

/// The budget for opening a file of so many bytes, whose weights may have to be copied: what setOpeningMemory() said,
/// else a quarter of the memory that is free now, and the file's size.
std::int64_t openingMemory(std::uint64_t fileBytes);

/// Bytes that this process may still take: of the machine, or of its control group where that has less. Memory that is
/// only kept counts as free.
std::int64_t freeMemory();

/// What LibTorch's CPU allocator holds, in bytes of blocks of 64 KiB and more.
struct TensorMemory {
  std::int64_t inUse = 0;  ///< by tensors
  std::int64_t kept = 0;   ///< to be handed out again (block_cache.h)
  std::int64_t peak = 0;   ///< most in use at once since releaseKeptMemory()
};
TensorMemory tensorMemory();

/// Gives memory that is only kept back to the system: where nothing runs for a while.
void releaseKeptMemory();

}  // namespace retrograd
