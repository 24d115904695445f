#include "core/trace/last_use.h"

#include "core/base/id_vector.h"

namespace retrograd {
namespace {

/// One scan from the end: the first meeting with an id is its last use. `seen` starts with what the trace returns.
template <class IdType, class Visit>
void scan(const Document& document, const Trace& trace, IdVector<IdType, bool>& seen, std::vector<IdType>& all,
          std::vector<std::uint32_t>& begin, Visit&& idOf) {
  std::vector<IdType> found;  // from the end; reversed below
  std::vector<std::uint32_t> count(trace.ops.size());
  for (std::size_t i = trace.ops.size(); i-- > 0;) {
    const auto before = found.size();
    const auto visit = [&](ValueId value) {
      const IdType id = idOf(value);
      if (!id || seen[id]) return;
      seen[id] = true;
      found.push_back(id);
    };
    const auto outputs = document.outputs(trace.ops[i]);
    const auto operands = document.operands(trace.ops[i]);
    for (auto it = outputs.rbegin(); it != outputs.rend(); ++it) visit(*it);
    for (auto it = operands.rbegin(); it != operands.rend(); ++it) visit(*it);
    count[i] = static_cast<std::uint32_t>(found.size() - before);
  }
  all.assign(found.rbegin(), found.rend());
  begin.assign(1, 0);
  for (auto n : count) begin.push_back(begin.back() + n);
}

}  // namespace

LastUses::LastUses(const Document& document, const Trace& trace) {
  const auto storageOf = [&](ValueId value) { return value ? document.value(value).storage : StorageId(); };
  IdVector<ValueId, bool> values(document.valueCount());
  IdVector<StorageId, bool> storages(document.storageCount());
  for (auto value : trace.outputs) {
    if (value) values[value] = true;
    if (auto storage = storageOf(value)) storages[storage] = true;
  }
  scan<ValueId>(document, trace, values, values_, valueBegin_, [](ValueId value) { return value; });
  scan<StorageId>(document, trace, storages, storages_, storageBegin_, storageOf);
}

}  // namespace retrograd
