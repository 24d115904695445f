#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/questions/memory/memory_finding.h"
#include "core/questions/memory/memory_groups.h"
#include "core/questions/memory_join/memory_join.h"

namespace retrograd {

/// One device's history of a snapshot that is open: what questions about any of its moments are asked of.
struct RecordedMemory {
  std::string path;
  std::shared_ptr<const MemorySnapshot> snapshot;
  std::shared_ptr<const MemoryPlaces> places;
  std::size_t device = 0;
  HeldMemory history;                             ///< whole
  std::int64_t failed = HeldAllocation::outside;  ///< the event of the request that failed
  std::vector<MemoryFinding> findings;            ///< of the moment that is looked at first
  std::optional<MemoryJoin> join;

  /// The event that a person looks at first: the request that failed, else the peak.
  std::int64_t first() const { return failed >= 0 ? failed : history.peakEvent; }
};

/// Replays a history, and looks for what a person should see.
RecordedMemory recordedMemory(const std::string& path, std::shared_ptr<const MemorySnapshot> snapshot,
                              std::size_t device, const Progress& progress = {});
/// Joins it with what a step of its program allocates; adds what that shows to the findings.
void joinRecorded(RecordedMemory& recorded, TracedStep step);

/// By holder only where it is joined.
GroupedAllocations groupedAllocations(const RecordedMemory& recorded, MemoryGrouping by);

/// What there is to say of an allocation, in words.
struct BlockFacts {
  std::string maker;  ///< "aten.addmm of blocks.0.up", or the line where no op is known
  std::string line, holder, lastReader;
};
BlockFacts factsOf(const MemoryPlaces& places, const MemoryJoin& join, const JoinedAllocation& block);

/// What a join shows of the blocks that are held after an event, largest first: saved twice, never read, held after the
/// last reader, saved in a wide dtype for one reader that wants a narrower one, taken by one op for itself.
std::vector<MemoryFinding> joinedFindings(const MemoryJoin& join, const MemoryPlaces& places,
                                          const JoinedMoment& moment, std::int64_t event);

}  // namespace retrograd
