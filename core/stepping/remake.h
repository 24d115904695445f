#pragma once
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/base/id_vector.h"
#include "core/trace/last_use.h"
#include "core/trace/trace.h"

namespace retrograd {

/// How a run can make values once more that it has let go: by which of its ops, from what is there at a position.
/// Position p is before the p-th op of the trace. Only what nobody ever writes to can be made so, by ops that draw
/// nothing; then it comes out bit for bit.
class Remaking {
 public:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  Remaking(const Document& document, const Trace& trace, const LastUses& lastUses);

  /// The position of the op that makes it; -1 for what is there from the start.
  std::int32_t producedAt(ValueId value) const { return producedAt_[value]; }
  /// It goes after the op at this position; never: results, inputs, and views of the latter.
  std::size_t releasedAt(ValueId value) const { return releasedAt_[value]; }
  bool aliveAt(ValueId value, std::size_t position) const;
  bool canBeMade(ValueId value) const;
  /// All values on the memory of this one, itself included.
  std::span<const ValueId> sharing(ValueId value) const;
  /// Another one on its memory that is alive at the position; none where there is none.
  ValueId sharedAt(ValueId value, std::size_t position) const;

  /// Positions of ops, rising, that make `missing` where all that is alive at `begin` is there but for these. nullopt
  /// where that takes more than `most` ops or cannot be done.
  std::optional<std::vector<std::size_t>> plan(std::size_t begin, std::span<const ValueId> missing,
                                               std::size_t most) const;

  /// The value's memory has been changed by hand: nothing is made of it, nor it of anything, until forgetExcluded().
  void exclude(ValueId value);
  void forgetExcluded() { excluded_.assign(excluded_.size(), 0); }

 private:
  bool isSteady(ValueId value) const;

  const Document& document_;
  const std::vector<BoundSymbolId>& ops_;
  IdVector<ValueId, std::int32_t> producedAt_;
  IdVector<ValueId, std::size_t> releasedAt_;
  IdVector<StorageId, char> written_, excluded_;
  std::vector<char> repeats_;  // by position: the op makes the same whenever it runs
  IdVector<StorageId, std::vector<ValueId>> onStorage_;
};

}  // namespace retrograd
