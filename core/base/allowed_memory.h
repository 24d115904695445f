#pragma once
#include <cstdint>
#include <optional>

namespace retrograd {

/// What a run of this program may take, in bytes, where somebody said so; nullopt: what is free when it starts. A run
/// that is predicted to take more is refused.
void setRunningMemory(std::optional<std::int64_t> bytes);
std::optional<std::int64_t> runningMemory();

/// What opening a file may allocate where it runs ops, in bytes, where somebody said so; nullopt: see openingMemory()
/// of core/torch/execution/memory_budget.h.
void setOpeningMemory(std::optional<std::int64_t> bytes);
std::optional<std::int64_t> chosenOpeningMemory();

}  // namespace retrograd
