#pragma once
#include <string>
#include <vector>

#include "core/judge/claim.h"
#include "core/questions/memory/held_memory.h"

namespace retrograd {

/// Something about a history that a person should look at.
struct MemoryFinding {
  enum class Kind : std::uint8_t {
    leak,           ///< made in a step and held in the steps after it
    growth,         ///< each step begins with more than the one before
    fragmentation,  ///< free memory in pieces that are too small
    rounding,       ///< blocks that are larger than what was asked for
    workspace,      ///< memory that an op or a library takes for itself
    savedTwice,     ///< a copy of a value that is saved too
    neverRead,      ///< saved, and no op of the backward reads it
    heldLate,       ///< held at the peak after its last reader
    wideDtype       ///< saved in a wide dtype, and read once, as a narrower one
  };
  Kind kind = Kind::leak;
  std::uint64_t bytes = 0;
  std::string text;  ///< one line, with the place
  std::string line;  ///< of Python; empty where none is to blame
};
inline constexpr std::size_t memoryFindingCount = 9;
std::string_view name(MemoryFinding::Kind kind);
/// As a claim, wherever it is shown: what grows or does not fit is a suspicion, the rest a note.
Claim claimOf(const MemoryFinding& finding);
/// Suspicions before notes, then by bytes.
void worstFirst(std::vector<MemoryFinding>& findings);

/// What a history shows by itself, the worst first: of the moment that was asked about, and of all its steps.
std::vector<MemoryFinding> memoryFindings(const MemorySnapshot& snapshot, std::size_t device,
                                          const MemoryPlaces& places, const HeldMemory& moment);

/// Why the request that failed did not fit, or nothing where none failed: what was asked for, by which line, how much
/// is free, and who holds the neighbours of the largest piece. `failed`: held at that event.
std::optional<MemoryFinding> whyNotFit(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places,
                                       const HeldMemory& failed);

}  // namespace retrograd
