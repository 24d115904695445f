#include "core/base/allowed_memory.h"

#include <atomic>

namespace retrograd {
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
