#include "core/split/saved_values.h"

#include <utility>

namespace retrograd {

SavedValues savedValues(const Document& document, std::span<const ValueId> values, std::span<const BoundSymbolId> ops) {
  SavedValues result;
  result.saved.assign(document.valueCount(), false);
  result.cost.assign(document.valueCount(), 0);
  for (auto value : values) {
    if (!value || result.contains(value)) continue;
    result.saved[value] = true;
    ++result.count;
  }
  IdVector<StorageId, char> counted(document.storageCount(), 0);
  for (auto op : ops)
    for (auto value : document.outputs(op)) {
      if (!value || !result.contains(value)) continue;
      const auto storage = document.value(value).storage;
      if (!storage || document.storage(storage).external || std::exchange(counted[storage], 1)) continue;
      result.cost[value] = document.storage(storage).bytes;
      result.bytes += result.cost[value];
    }
  return result;
}

}  // namespace retrograd
