#pragma once
#include <cstdint>
#include <optional>

namespace retrograd {

/// What a run of this program may take, in bytes, where somebody said so; nullopt: what is free when it starts. A run that is predicted to take more is
/// refused.
void setRunningMemory(std::int64_t bytes);
std::optional<std::int64_t> runningMemory();

}  // namespace retrograd
