#pragma once
#include <QString>

#include "core/questions/memory_join/recorded_memory.h"

namespace retrograd::views {

/// A block in words; those of a join are empty where there is none.
struct BlockWords {
  std::uint64_t bytes = 0;
  QString maker, line, holder, level, made, freed, could;

  /// All of it as one line.
  QString sentence() const;
};
/// `block`: of the history's allocations.
BlockWords blockWords(const RecordedMemory& recorded, std::size_t block);

}  // namespace retrograd::views
