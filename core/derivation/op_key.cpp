#include "core/derivation/op_key.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace retrograd {
namespace {

/// Ops of the computation that bear this name, in order.
std::vector<BoundSymbolId> operationsNamed(const Analysis& analysis, const std::string& name) {
  std::vector<BoundSymbolId> found;
  const auto& document = *analysis.document;
  for (auto op : analysis.computation().trace.ops)
    if (document.text(document.boundSymbol(op).name) == name) found.push_back(op);
  return found;
}

/// Ops with the origin that share role, operand and output, in order; those without a computation op are sought in the
/// joint.
std::vector<BoundSymbolId> candidates(const Analysis& analysis, BoundSymbolId operation, const OpKey& key) {
  const auto& document = *analysis.document;
  std::vector<BoundSymbolId> found;
  const auto consider = [&](BoundSymbolId op) {
    const auto& origin = document.boundSymbol(op).origin;
    if (origin.op == operation && origin.role == key.role && origin.operand == key.operand &&
        origin.output == key.output)
      found.push_back(op);
  };
  if (operation) {
    for (auto op : analysis.links.derived(operation)) consider(op);
  } else {
    for (auto op : analysis.joint.ops) consider(op);
  }
  return found;
}

int indexIn(const std::vector<BoundSymbolId>& ops, BoundSymbolId op) {
  const auto it = std::find(ops.begin(), ops.end(), op);
  return it == ops.end() ? -1 : static_cast<int>(it - ops.begin());
}

}  // namespace

OpKey keyOf(const Analysis& analysis, BoundSymbolId op) {
  const auto& document = *analysis.document;
  const auto& bound = document.boundSymbol(op);
  OpKey key;
  key.role = bound.origin.role;
  key.operand = bound.origin.operand;
  key.output = bound.origin.output;
  const auto operation = OriginLinks::origin(document, op);
  if (operation) {
    key.operation = document.text(document.boundSymbol(operation).name);
    key.operationOrdinal = indexIn(operationsNamed(analysis, key.operation), operation);
  }
  if (key.role != Role::none) key.ordinal = indexIn(candidates(analysis, operation, key), op);
  return key;
}

std::vector<BoundSymbolId> findKeys(const Analysis& analysis, const std::vector<OpKey>& keys) {
  std::vector<BoundSymbolId> found;
  if (keys.empty()) return found;
  const auto& document = *analysis.document;
  std::unordered_map<std::string_view, std::vector<BoundSymbolId>> byName;
  for (auto op : analysis.computation().trace.ops) byName[document.text(document.boundSymbol(op).name)].push_back(op);
  for (const auto& key : keys) {
    BoundSymbolId operation;
    const bool named = key.operationOrdinal >= 0 && (!key.operation.empty() || key.role == Role::none);
    if (named) {
      const auto& operations = byName[key.operation];
      if (std::cmp_less(key.operationOrdinal, operations.size())) operation = operations[key.operationOrdinal];
    }
    if (key.role == Role::none || (named && !operation)) {
      found.push_back(operation);
      continue;
    }
    const auto ops = candidates(analysis, operation, key);
    found.push_back(key.ordinal >= 0 && std::cmp_less(key.ordinal, ops.size()) ? ops[key.ordinal] : BoundSymbolId());
  }
  return found;
}

ValueKey keyOf(const Analysis& analysis, ValueId value) {
  const auto& document = *analysis.document;
  ValueKey key;
  const auto maker = document.value(value).producer;
  if (!maker) {
    key.input = document.displayName(value);
    return key;
  }
  key.maker = keyOf(analysis, maker);
  const auto outputs = document.outputs(maker);
  key.output = std::find(outputs.begin(), outputs.end(), value) - outputs.begin();
  return key;
}

std::vector<ValueId> findKeys(const Analysis& analysis, const std::vector<ValueKey>& keys) {
  const auto& document = *analysis.document;
  std::vector<OpKey> makers;
  for (const auto& key : keys) makers.push_back(key.maker);
  const auto ops = findKeys(analysis, makers);
  std::vector<ValueId> found;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ValueId value;
    if (!keys[i].input.empty()) {
      for (const auto* trace : {&analysis.joint, &analysis.computation().trace})
        for (auto input : trace->inputs)
          if (!value && input && document.displayName(input) == keys[i].input) value = input;
    } else if (ops[i] && keys[i].output < document.outputs(ops[i]).size()) {
      value = document.outputs(ops[i])[keys[i].output];
    }
    found.push_back(value);
  }
  return found;
}

}  // namespace retrograd
