#include "core/base/memory_account.h"

#include <string>

#include "core/base/error.h"

namespace retrograd {

std::shared_ptr<MemoryAccount>& MemoryAccount::slot() {
  static thread_local std::shared_ptr<MemoryAccount> current;
  return current;
}

const std::shared_ptr<MemoryAccount>& MemoryAccount::current() { return slot(); }

void MemoryAccount::charge(std::uint64_t bytes) {
  const auto before = used_.fetch_add(bytes);
  if (bytes <= limit_ && before <= limit_ - bytes) return;
  used_ -= bytes;
  badInput("its content takes more than " + std::to_string(limit_ >> 20) +
           " MiB of memory when it is read, which is out of proportion to its size");
}

void chargeReading(std::uint64_t bytes) {
  if (const auto& account = MemoryAccount::current()) account->charge(bytes);
}

}  // namespace retrograd
