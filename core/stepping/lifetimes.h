#pragma once
#include <limits>
#include <span>
#include <vector>

#include "core/base/id_vector.h"
#include "core/trace/last_use.h"
#include "core/trace/trace.h"

namespace retrograd {

/// When a run makes each value and lets it go, and which values share memory. Position p is before the p-th op of the
/// trace.
class Lifetimes {
 public:
  Lifetimes(const Document& document, const Trace& trace);

  /// The position of the op that makes it; -1 for what is there from the start.
  std::int32_t producedAt(ValueId value) const { return producedAt_[value]; }
  /// Values that a run lets go after the op at this position: not results, inputs, and views of the latter.
  std::span<const ValueId> released(std::size_t position) const;
  bool aliveAt(ValueId value, std::size_t position) const;
  /// Whether it is memory of an input or a weight, which is not the run's.
  bool isExternal(ValueId value) const;
  /// Whether some op writes to the memory.
  bool isWritten(StorageId storage) const { return written_[storage] != 0; }
  /// All values on the memory of this one, itself included.
  std::span<const ValueId> sharing(ValueId value) const;

 private:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  const Document& document_;
  IdVector<ValueId, std::int32_t> producedAt_;
  IdVector<ValueId, std::size_t> releasedAt_;
  std::vector<ValueId> released_;
  std::vector<std::uint32_t> releasedBegin_;
  IdVector<StorageId, char> written_;
  IdVector<StorageId, std::vector<ValueId>> onStorage_;
};

}  // namespace retrograd
