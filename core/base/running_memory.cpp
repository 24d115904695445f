#include "core/base/running_memory.h"

#include <atomic>

namespace retrograd {
namespace {

std::atomic<std::int64_t> chosen = -1;

}  // namespace

void setRunningMemory(std::int64_t bytes) { chosen = bytes; }

std::optional<std::int64_t> runningMemory() {
  const auto bytes = chosen.load();
  return bytes < 0 ? std::nullopt : std::optional(bytes);
}

}  // namespace retrograd
