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

namespace {

/// Negative: nobody chose.
std::atomic<std::int64_t> running = -1, opening = -1;

std::optional<std::int64_t> chosen(const std::atomic<std::int64_t>& bytes) {
  const auto now = bytes.load();
  return now < 0 ? std::nullopt : std::optional(now);
}

}  // namespace

void setRunningMemory(std::optional<std::int64_t> bytes) { running = bytes.value_or(-1); }
std::optional<std::int64_t> runningMemory() { return chosen(running); }

void setOpeningMemory(std::optional<std::int64_t> bytes) { opening = bytes.value_or(-1); }
std::optional<std::int64_t> chosenOpeningMemory() { return chosen(opening); }

}  // namespace retrograd
