#include "core/split/dataflow.h"

#include <algorithm>

#include "core/trace/effects.h"

namespace retrograd {
namespace {

bool onlyViews(const Document& document, BoundSymbolId op) {
  bool any = false;
  for (auto output : document.outputs(op)) {
    if (!output) continue;
    const auto storage = document.value(output).storage;
    const auto operands = document.operands(op);
    if (!storage || std::none_of(operands.begin(), operands.end(),
                                 [&](ValueId o) { return o && document.value(o).storage == storage; }))
      return false;
    any = true;
  }
  return any;
}

/// Appends unless it is there already: positions come in rising order.
void addOnce(std::vector<std::int32_t>& positions, std::int32_t position) {
  if (positions.empty() || positions.back() != position) positions.push_back(position);
}

}  // namespace

Dataflow::Dataflow(const Document& document, const Trace& joint)
    : document_(document),
      joint_(joint),
      producer_(document.valueCount(), -1),
      writtenIndex_(document.storageCount(), -1) {
  for (std::size_t i = 0; i < joint.forwardCount; ++i)
    for (auto output : document.outputs(joint.ops[i]))
      if (output && producer_[output] < 0) producer_[output] = static_cast<std::int32_t>(i);
  findWrites();
  if (!written_.empty()) findMakersAndReaders();
}

const Dataflow::WrittenStorage* Dataflow::writes(StorageId storage) const {
  const auto index = storage ? writtenIndex_[storage] : -1;
  return index < 0 ? nullptr : &written_[index];
}

Dataflow::WrittenStorage& Dataflow::written(StorageId storage) {
  auto& index = writtenIndex_[storage];
  if (index < 0) {
    index = static_cast<std::int32_t>(written_.size());
    written_.push_back({storage, {}, {}, {}, document_.storage(storage).external, false});
  }
  return written_[index];
}

void Dataflow::findWrites() {
  isView_.assign(joint_.forwardCount, 0);
  writesUnnamed_.assign(joint_.forwardCount, 0);
  for (std::size_t i = 0; i < joint_.ops.size(); ++i) {
    const auto op = joint_.ops[i];
    const auto targets = writtenOperands(document_, op);
    if (i < joint_.forwardCount) {
      writesUnnamed_[i] = targets.empty() && (document_.boundSymbol(op).effects & effect::writes) != 0;
      isView_[i] = targets.empty() && !writesUnnamed_[i] && onlyViews(document_, op);
    }
    for (auto target : targets) {
      const auto storage = document_.value(target).storage;
      if (!storage) {
        if (i < joint_.forwardCount) writesUnnamed_[i] = 1;
        continue;
      }
      auto& entry = written(storage);
      if (i < joint_.forwardCount) addOnce(entry.writers, static_cast<std::int32_t>(i));
      else entry.writtenByBackward = true;
    }
  }
}

void Dataflow::findMakersAndReaders() {
  for (std::size_t i = 0; i < joint_.forwardCount; ++i) {
    const auto position = static_cast<std::int32_t>(i);
    const auto entryOf = [&](ValueId value) -> WrittenStorage* {
      const auto storage = value ? document_.value(value).storage : StorageId();
      const auto index = storage ? writtenIndex_[storage] : -1;
      return index < 0 ? nullptr : &written_[index];
    };
    for (auto output : document_.outputs(joint_.ops[i]))
      if (auto* entry = entryOf(output); entry && (entry->writtenByBackward || position <= entry->writers.back()))
        addOnce(entry->makers, position);
    for (auto operand : document_.operands(joint_.ops[i])) {
      auto* entry = entryOf(operand);
      if (!entry) continue;
      const bool writes = std::binary_search(entry->writers.begin(), entry->writers.end(), position);
      if (writes) addOnce(entry->makers, position);  // one that writes without returning is a maker too
      else addOnce(entry->readers, position);
    }
  }
  for (auto& entry : written_) {
    std::sort(entry.makers.begin(), entry.makers.end());
    entry.makers.erase(std::unique(entry.makers.begin(), entry.makers.end()), entry.makers.end());
  }
}

}  // namespace retrograd
