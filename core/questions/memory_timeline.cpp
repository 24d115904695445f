#include "core/questions/memory_timeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/enum_array.h"
#include "core/base/id_vector.h"
#include "core/trace/last_use.h"

namespace retrograd {

std::string_view name(MemoryUse use) {
  static constexpr EnumArray<MemoryUse, std::string_view, memoryUseCount> names{"saved", "result", "gradient",
                                                                                "forward", "backward"};
  return names[use];
}

namespace {

class Builder {
 public:
  explicit Builder(const Analysis& analysis)
      : analysis_(analysis), document_(*analysis.document), uses_(document_, analysis.joint) {
    liveUses_.assign(document_.storageCount(), 0);
    lifeOf_.assign(document_.storageCount(), -1);
    known_.assign(document_.storageCount(), std::nullopt);
    held_.assign(document_.valueCount(), 0);
  }

  MemoryTimeline run() {
    const auto& ops = analysis_.joint.ops;
    std::array<std::int64_t, memoryUseCount> live{};
    classify();
    timeline_.liveBytes.reserve(ops.size());
    for (std::size_t position = 0; position < ops.size(); ++position) {
      for (auto output : document_.outputs(ops[position])) begin(output, position, live);
      // As a session does: measured after the op ran, before what nobody reads any more is let go.
      timeline_.liveBytes.push_back(live);
      for (auto value : uses_.values(position)) end(value, position, live);
    }
    for (auto& life : timeline_.lives)
      if (life.to == 0) life.to = ops.size();
    for (std::size_t i = 0; i < timeline_.liveBytes.size(); ++i)
      if (const auto total = timeline_.total(i); total > timeline_.peakBytes)
        timeline_.peakBytes = total, timeline_.peakPosition = i;
    addExternal();
    return std::move(timeline_);
  }

 private:
  bool counts(ValueId value) const {
    if (!value) return false;
    const auto storage = document_.value(value).storage;
    return storage && !document_.storage(storage).external;
  }

  void classify() {
    const auto mark = [&](std::span<const ValueId> values, MemoryUse use) {
      for (auto value : values)
        if (auto* known = counts(value) ? &known_[document_.value(value).storage] : nullptr; known && !*known)
          *known = use;
    };
    const auto& joint = analysis_.joint;
    mark(std::span(analysis_.backward.inputs).first(analysis_.backward.savedCount), MemoryUse::saved);
    mark(std::span(joint.outputs).first(joint.resultCount), MemoryUse::result);
    mark(std::span(joint.outputs).subspan(joint.resultCount), MemoryUse::gradient);
  }

  void begin(ValueId value, std::size_t position, std::array<std::int64_t, memoryUseCount>& live) {
    if (!counts(value) || std::exchange(held_[value], 1)) return;
    const auto storage = document_.value(value).storage;
    if (liveUses_[storage]++ > 0) return;
    StorageLife life;
    life.storage = storage;
    life.value = value;
    life.bytes = document_.storage(storage).bytes;
    life.from = position;
    life.use = known_[storage]                           ? *known_[storage]
               : position < analysis_.joint.forwardCount ? MemoryUse::forward
                                                         : MemoryUse::backward;
    live[static_cast<std::size_t>(life.use)] += life.bytes;
    lifeOf_[storage] = std::ssize(timeline_.lives);
    timeline_.lives.push_back(life);
  }

  void end(ValueId value, std::size_t position, std::array<std::int64_t, memoryUseCount>& live) {
    if (!counts(value) || !std::exchange(held_[value], 0)) return;
    const auto storage = document_.value(value).storage;
    if (--liveUses_[storage] > 0) return;
    auto& life = timeline_.lives[lifeOf_[storage]];
    life.to = position + 1;
    live[static_cast<std::size_t>(life.use)] -= life.bytes;
  }

  void addExternal() {
    IdVector<StorageId, char> seen(document_.storageCount(), 0);
    for (auto id : analysis_.joint.inputs) {
      if (!id || !document_.value(id).storage || std::exchange(seen[document_.value(id).storage], 1)) continue;
      const auto& value = document_.value(id);
      const bool isParameter =
          value.kind == ValueKind::parameter || value.kind == ValueKind::buffer || value.kind == ValueKind::constant;
      (isParameter ? timeline_.parameterBytes : timeline_.inputBytes) += document_.storage(value.storage).bytes;
    }
  }

  const Analysis& analysis_;
  const Document& document_;
  LastUses uses_;
  MemoryTimeline timeline_;
  IdVector<StorageId, std::optional<MemoryUse>> known_;  // what is said of it before it is made
  IdVector<ValueId, char> held_;
  IdVector<StorageId, std::int32_t> liveUses_;  // values of it that are held
  IdVector<StorageId, std::int64_t> lifeOf_;    // into lives, -1
};

}  // namespace

std::int64_t MemoryTimeline::total(std::size_t position) const {
  std::int64_t sum = 0;
  for (auto bytes : liveBytes.at(position)) sum += bytes;
  return sum;
}

MemoryTimeline memoryTimeline(const Analysis& analysis) { return Builder(analysis).run(); }

std::vector<std::pair<std::string, std::int64_t>> bytesByModule(const Analysis& analysis,
                                                                const MemoryTimeline& timeline, std::size_t position) {
  std::map<std::string, std::int64_t> bytes;
  const auto& document = *analysis.document;
  for (const auto& life : timeline.lives)
    if (life.from <= position && position < life.to)
      if (const auto op = analysis.joint.ops.at(life.from))
        bytes[std::string(document.text(document.boundSymbol(op).module))] += life.bytes;
  std::vector<std::pair<std::string, std::int64_t>> sorted(bytes.begin(), bytes.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

}  // namespace retrograd
