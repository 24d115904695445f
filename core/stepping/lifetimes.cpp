#include "core/stepping/lifetimes.h"

#include <utility>

#include "core/trace/effects.h"

namespace retrograd {

Lifetimes::Lifetimes(const Document& document, const Trace& trace)
    : document_(document),
      producedAt_(document.valueCount(), -1),
      releasedAt_(document.valueCount(), never),
      releasedBegin_{0},
      written_(document.storageCount(), 0),
      onStorage_(document.storageCount()) {
  const LastUses lastUses(document, trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    for (auto operand : writtenOperands(document, trace.ops[i]))
      if (const auto storage = document.value(operand).storage) written_[storage] = 1;
    for (auto output : document.outputs(trace.ops[i]))
      if (output) producedAt_[output] = static_cast<std::int32_t>(i);
    for (auto value : lastUses.values(i)) {
      if (isExternal(value)) continue;
      releasedAt_[value] = i;
      released_.push_back(value);
    }
    releasedBegin_.push_back(static_cast<std::uint32_t>(released_.size()));
  }
  for (auto value : producedAt_.ids())
    if (const auto storage = document.value(value).storage) onStorage_[storage].push_back(value);
}

std::span<const ValueId> Lifetimes::released(std::size_t position) const {
  return {released_.data() + releasedBegin_[position], releasedBegin_[position + 1] - releasedBegin_[position]};
}

bool Lifetimes::aliveAt(ValueId value, std::size_t position) const {
  const auto made = producedAt(value);
  return (made < 0 || std::cmp_less(made, position)) && position <= releasedAt_[value];
}

bool Lifetimes::isExternal(ValueId value) const {
  const auto storage = document_.value(value).storage;
  return storage && document_.storage(storage).external;
}

std::span<const ValueId> Lifetimes::sharing(ValueId value) const {
  const auto storage = document_.value(value).storage;
  return storage ? std::span<const ValueId>(onStorage_[storage]) : std::span<const ValueId>();
}

}  // namespace retrograd
