#include "core/trace/dead_code.h"

#include <algorithm>

#include "core/base/id_vector.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// What is read by the part of the trace already seen; the scan goes from the end.
class Needed {
 public:
  explicit Needed(const Document& document)
      : document_(document), values_(document.valueCount()), storages_(document.storageCount()) {}

  void read(ValueId value) {
    if (!value) return;
    values_[value] = true;
    if (auto storage = document_.value(value).storage) storages_[storage] = true;
  }

  bool isKept(BoundSymbolId op) const {
    const auto& bound = document_.boundSymbol(op);
    if (bound.effects & (effect::opaque | effect::random)) return true;
    for (auto output : document_.outputs(op))
      if (output && values_[output]) return true;
    const auto written = writtenOperands(document_, op);
    if (written.empty()) return (bound.effects & effect::writes) != 0;  // writes something we cannot name
    return std::any_of(written.begin(), written.end(), [&](ValueId value) { return isObserved(value); });
  }

 private:
  bool isObserved(ValueId value) const {
    const auto storage = document_.value(value).storage;
    return !storage || storages_[storage] || document_.storage(storage).external;
  }

  const Document& document_;
  IdVector<ValueId, bool> values_;
  IdVector<StorageId, bool> storages_;
};

}  // namespace

Trace eliminateDeadCode(const Document& document, const Trace& trace) {
  Needed needed(document);
  for (auto value : trace.outputs) needed.read(value);

  std::vector<BoundSymbolId> kept;
  std::size_t keptInForward = 0;
  for (std::size_t i = trace.ops.size(); i-- > 0;) {
    const auto op = trace.ops[i];
    if (!needed.isKept(op)) continue;
    for (auto operand : document.operands(op)) needed.read(operand);
    kept.push_back(op);
    if (i < trace.forwardCount) ++keptInForward;
  }

  Trace result = trace;
  result.ops.assign(kept.rbegin(), kept.rend());
  result.forwardCount = keptInForward;
  PassRecord record;
  record.pass = "Dead code elimination";
  record.parameters = {{"removed", std::to_string(trace.ops.size() - kept.size())}};
  record.parent = trace.name;
  result.history.push_back(std::move(record));
  return result;
}

}  // namespace retrograd
