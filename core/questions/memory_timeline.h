#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// What live memory is for.
enum class MemoryUse : std::uint8_t {
  saved,     ///< activations kept for the backward
  result,    ///< outputs of the computation that nothing saves
  gradient,  ///< gradients of parameters and inputs
  forward,   ///< temporaries of the forward
  backward   ///< temporaries of the backward, recomputed values included
};
inline constexpr std::size_t memoryUseCount = 5;
std::string_view name(MemoryUse);

/// A storage that the traces allocate, from the position of the op that makes it to the one after which it is let go.
struct StorageLife {
  StorageId storage;
  ValueId value;  ///< the first value in it
  std::int64_t bytes = 0;
  MemoryUse use = MemoryUse::forward;
  std::size_t from = 0, to = 0;  ///< positions as in Session; live after the ops [from, to)
};

/// Live bytes over forward and backward as the traces have them, before anything runs: which storage lives from where
/// to where. Parameters, buffers and inputs are there all the time and not counted; what kernels take for themselves
/// while they run is not known.
struct MemoryTimeline {
  std::vector<StorageLife> lives;                                   ///< in order of allocation
  std::vector<std::array<std::int64_t, memoryUseCount>> liveBytes;  ///< after the op at each position, by use
  std::int64_t peakBytes = 0;                                       ///< of the sums
  std::size_t peakPosition = 0;                                     ///< after which op
  std::int64_t parameterBytes = 0,
               inputBytes = 0;  ///< storages that are there all the time: parameters and buffers; inputs and cotangents

  std::int64_t total(std::size_t position) const;
};

MemoryTimeline memoryTimeline(const Analysis& analysis);

/// Bytes of each module's storages at a position, largest first; a storage belongs to the module of the op that made
/// it.
std::vector<std::pair<std::string, std::int64_t>> bytesByModule(const Analysis& analysis,
                                                                const MemoryTimeline& timeline, std::size_t position);

}  // namespace retrograd
