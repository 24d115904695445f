#pragma once
#include <string>
#include <vector>

#include "core/base/enum_array.h"
#include "core/questions/memory/memory_groups.h"
#include "core/questions/memory_join/traced_step.h"

namespace retrograd {

/// How sure it is which allocation of the history is which of the trace.
enum class JoinLevel : std::uint8_t {
  unknown,
  aligned,  ///< order, size and line agree
  exact     ///< the frames name the node of the graph
};
inline constexpr std::size_t joinLevelCount = 3;
std::string_view name(JoinLevel level);

/// An allocation of a history with what a trace knows of it.
struct JoinedAllocation {
  HeldAllocation what;
  JoinLevel level = JoinLevel::unknown;
  std::int32_t traced = -1;     ///< into TracedStep::allocations
  std::int32_t within = -1;     ///< the same, of the op that took it for itself while it ran
  std::int32_t parameter = -1;  ///< into TracedStep::parameters: a parameter, or an optimizer's state of it
  std::int32_t step = -1;       ///< the forward and backward of the history that it was made in
  bool recomputed = false;
  bool inCode = false;  ///< a line of code that a compiler wrote made it, and says whose it is
  std::int64_t couldBeFreed = HeldAllocation::outside;    ///< the event at which its last reader had run
  std::int64_t readInForward = HeldAllocation::outside;   ///< the same of its last reader in the forward
  std::int64_t readInBackward = HeldAllocation::outside;  ///< the event with which its first reader there begins
};

/// A history joined with a trace.
struct MemoryJoin {
  TracedStep trace;
  std::vector<JoinedAllocation> allocations;  ///< of the whole history, in the order in which they were made
  std::size_t steps = 0;                      ///< forwards with their backwards
  std::vector<std::int64_t> forwardEnds;      ///< of each step: the event of its forward's last allocation
};

/// Joins a whole history (wholeHistory()) with what a step of the model allocates. The cost is linear in the history.
MemoryJoin joinMemory(const HeldMemory& history, const MemoryPlaces& places, TracedStep trace);

/// Whether anything of a step was found in the history; else it is probably of another program.
bool agrees(const MemoryJoin& join);

/// The op that made an allocation; invalid where that is not known.
BoundSymbolId makerOf(const MemoryJoin& join, const JoinedAllocation& allocation);

/// For whom an allocation is held: "saved for aten.gelu_backward of blocks.0", "gradient", "unknown".
std::string holderOf(const MemoryJoin& join, const JoinedAllocation& allocation);

/// Allocations that are held at a moment, by the level of their join and by holder. The bytes of the levels, and those
/// of the holders, sum to the moment's.
struct JoinedMoment {
  EnumArray<JoinLevel, std::uint64_t, joinLevelCount> bytes{};
  std::vector<MemoryGroup> holders;  ///< largest first
  std::vector<std::size_t> blocks;   ///< into MemoryJoin::allocations, largest first
};
JoinedMoment joinedMoment(const MemoryJoin& join, std::int64_t event);

/// "blocks.0" of "blocks.0.up": the module up to its first number, else its first part.
std::string layerOf(const std::string& module);
/// Bytes that each layer's forward made and that are held after an event, by layer.
std::vector<MemoryGroup> bytesByLayer(const MemoryJoin& join, std::int64_t event);

}  // namespace retrograd
