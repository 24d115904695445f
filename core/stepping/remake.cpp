#include "core/stepping/remake.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/questions/intended_infinities.h"
#include "core/trace/effects.h"

namespace retrograd {

Remaking::Remaking(const Document& document, const Trace& trace, const LastUses& lastUses)
    : document_(document),
      ops_(trace.ops),
      producedAt_(document.valueCount(), -1),
      releasedAt_(document.valueCount(), never),
      written_(document.storageCount(), 0),
      excluded_(document.storageCount(), 0),
      repeats_(trace.ops.size(), 0),
      onStorage_(document.storageCount()) {
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const auto& bound = document.boundSymbol(ops_[i]);
    const auto written = writtenOperands(document, ops_[i]);
    repeats_[i] = written.empty() && !bound.replays && !(bound.effects & effect::random) &&
                  !leavesUninitialised(document, ops_[i]);
    for (auto operand : written)
      if (const auto storage = document.value(operand).storage) written_[storage] = 1;
    for (auto output : document.outputs(ops_[i]))
      if (output) {
        producedAt_[output] = static_cast<std::int32_t>(i);
        if (const auto storage = document.value(output).storage) onStorage_[storage].push_back(output);
      }
    for (auto value : lastUses.values(i)) {
      const auto storage = document.value(value).storage;
      if (!storage || !document.storage(storage).external) releasedAt_[value] = i;
    }
  }
}

bool Remaking::aliveAt(ValueId value, std::size_t position) const {
  const auto made = producedAt(value);
  return (made < 0 || std::cmp_less(made, position)) && position <= releasedAt(value);
}

bool Remaking::isSteady(ValueId value) const {
  const auto storage = document_.value(value).storage;
  if (!storage) return !document_.isTensor(value);
  return !written_[storage] && !excluded_[storage];
}

bool Remaking::canBeMade(ValueId value) const {
  return document_.isTensor(value) && producedAt(value) >= 0 && isSteady(value) && repeats_[producedAt(value)];
}

std::span<const ValueId> Remaking::sharing(ValueId value) const {
  const auto storage = document_.value(value).storage;
  return storage ? std::span<const ValueId>(onStorage_[storage]) : std::span<const ValueId>();
}

ValueId Remaking::sharedAt(ValueId value, std::size_t position) const {
  for (auto other : sharing(value))
    if (other != value && aliveAt(other, position)) return other;
  return {};
}

std::optional<std::vector<std::size_t>> Remaking::plan(std::size_t begin, std::span<const ValueId> missing,
                                                       std::size_t most) const {
  std::set<std::size_t> plan;
  std::vector<ValueId> wanted(missing.begin(), missing.end());
  auto sorted = wanted;
  std::sort(sorted.begin(), sorted.end());
  while (!wanted.empty()) {
    const auto value = wanted.back();
    wanted.pop_back();
    if (!canBeMade(value)) return std::nullopt;
    const std::size_t at = producedAt(value);
    if (!plan.insert(at).second) continue;
    if (plan.size() > most) return std::nullopt;
    for (auto operand : document_.operands(ops_[at])) {
      if (!operand) continue;
      if (!isSteady(operand)) return std::nullopt;
      const bool there = aliveAt(operand, begin) && !std::binary_search(sorted.begin(), sorted.end(), operand);
      if (!there) wanted.push_back(operand);
    }
  }
  return std::vector<std::size_t>(plan.begin(), plan.end());
}

void Remaking::exclude(ValueId value) {
  if (const auto storage = document_.value(value).storage) excluded_[storage] = 1;
}

}  // namespace retrograd
