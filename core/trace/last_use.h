#pragma once
#include <span>
#include <vector>

#include "core/trace/trace.h"

namespace retrograd {

/// Where each value and each storage of a trace is read last. A value that is never read is last used where it is made.
/// Results of the trace are not listed: they outlive it.
class LastUses {
 public:
  LastUses(const Document& document, const Trace& trace);

  /// Values that no op after the `position`-th reads and that are not returned, in order of operands, then outputs.
  std::span<const ValueId> values(std::size_t position) const { return at(values_, valueBegin_, position); }
  /// Storages whose last value sees its last use there: the memory that can go.
  std::span<const StorageId> storages(std::size_t position) const { return at(storages_, storageBegin_, position); }

 private:
  template <class T>
  static std::span<const T> at(const std::vector<T>& all, const std::vector<std::uint32_t>& begin, std::size_t i) {
    return {all.data() + begin[i], begin[i + 1] - begin[i]};
  }
  std::vector<ValueId> values_;
  std::vector<StorageId> storages_;
  std::vector<std::uint32_t> valueBegin_, storageBegin_;
};

}  // namespace retrograd
