#include "core/questions/memory_join/memory_what_if.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/enum_array.h"
#include "core/base/module_path.h"

namespace retrograd {

/// A request that takes the place of another, or comes after an event.
struct MemoryExperiment::Edit {
  std::int64_t event = 0;
  AllocatorRequest request;
  bool removes = false;  ///< the request of this event
};

namespace {

using Kind = MemoryChange::Kind;

AllocatorRequest allocation(std::uint32_t number, std::uint64_t size, std::int64_t stream) {
  return {AllocatorRequest::Kind::allocate, number, size, stream};
}

AllocatorRequest release(std::uint32_t number) { return {AllocatorRequest::Kind::release, number, 0, 0}; }

/// The backward reads it later, or would have: the forward is done with it.
bool isHeldForBackward(const JoinedAllocation& each) {
  if (each.readInBackward >= 0) return each.what.to >= each.readInBackward;
  return each.readInForward >= 0 && (each.what.to < 0 || each.what.to > each.readInForward);
}

bool isNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string_view name(MemoryChange::Kind kind) {
  static constexpr EnumArray<Kind, std::string_view, 3> names{"recompute", "bfloat16", "offload"};
  return names[kind];
}

MemoryExperiment::MemoryExperiment(const MemorySnapshot& snapshot, std::size_t device, const MemoryJoin& join)
    : snapshot_(snapshot), device_(device), join_(join), requests_(allocatorRequests(snapshot, device)) {
  recorded_ = modelledMemory(snapshot, device, requests_);
  for (std::size_t i = 0; i < requests_.madeAt.size(); ++i) allocationAt_.emplace(requests_.madeAt[i], i);
}

bool MemoryExperiment::isBelow(const std::string& module, const std::string& path) const {
  return path.empty() || isInModule(module, path);
}

/// "blocks" is "blocks.0", "blocks.1", ... where all below it lies in such.
std::vector<std::string> MemoryExperiment::unitsOf(const std::string& module) const {
  std::set<std::string> units;
  for (const auto& traced : join_.trace.allocations) {
    if (traced.backward || !isBelow(traced.module, module)) continue;
    if (traced.module.size() <= module.size()) return {module};
    const auto begin = module.empty() ? 0 : module.size() + 1;
    const auto end = std::min(traced.module.find('.', begin), traced.module.size());
    if (!isNumber(std::string_view(traced.module).substr(begin, end - begin))) return {module};
    units.insert(traced.module.substr(0, end));
  }
  return {units.begin(), units.end()};
}

std::vector<std::string> MemoryExperiment::candidates() const {
  std::set<std::string> found;
  for (const auto& each : join_.allocations) {
    if (each.traced < 0 || each.recomputed) continue;
    const auto& traced = join_.trace.allocations[each.traced];
    if (traced.backward || traced.use != TracedAllocation::Use::saved || traced.module.empty()) continue;
    auto path = layerOf(traced.module);
    if (const auto dot = path.rfind('.'); dot != std::string::npos) path.resize(dot);  // all layers of its list
    found.insert(path);
  }
  return {found.begin(), found.end()};
}

MemoryWhatIf MemoryExperiment::run(const MemoryChange& wanted) const {
  MemoryWhatIf result{.change = wanted};
  Edits edits;
  const auto units = unitsOf(wanted.module);
  for (const auto& unit : units)
    for (std::int32_t step = 0; step < static_cast<std::int32_t>(join_.forwardEnds.size()); ++step)
      change(wanted, unit, step, edits, result);
  result.modules = units.size();
  std::ranges::stable_sort(edits, {}, &Edit::event);
  AllocatorRequests changed;
  changed.outline = requests_.outline;
  changed.addresses = requests_.addresses;
  auto edit = edits.begin();
  for (std::size_t i = 0; i < requests_.requests.size(); ++i) {
    const auto event = requests_.events[i];
    for (; edit != edits.end() && edit->event < event; ++edit) changed.requests.push_back(edit->request);
    bool isRemoved = false;
    for (auto own = edit; own != edits.end() && own->event == event; ++own) isRemoved |= own->removes;
    if (!isRemoved) changed.requests.push_back(requests_.requests[i]);
    for (; edit != edits.end() && edit->event == event; ++edit)
      if (!edit->removes) changed.requests.push_back(edit->request);
  }
  const auto modelled = modelledMemory(snapshot_, device_, changed);
  result.peakBytes = modelled.peakBytes;
  result.peakReserved = modelled.peakReserved;
  return result;
}

/// Tensors that the unit's forward makes and its own backward reads are let go after the forward read them last, and
/// are there again before the backward reads one; not again where memory ran out before that.
void MemoryExperiment::change(const MemoryChange& wanted, const std::string& unit, std::int32_t step, Edits& edits,
                              MemoryWhatIf& result) const {
  std::vector<std::size_t> saved;
  auto backward = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < join_.allocations.size(); ++i) {
    const auto& each = join_.allocations[i];
    if (each.step != step || each.traced < 0 || each.recomputed) continue;
    const auto& traced = join_.trace.allocations[each.traced];
    if (traced.backward || traced.use != TracedAllocation::Use::saved || !isHeldForBackward(each)) continue;
    if (!isBelow(traced.module, unit) || !isBelow(traced.readerModule, unit)) continue;
    if (wanted.kind == Kind::bfloat16 && !traced.isFloat32) continue;
    saved.push_back(i);
    if (each.readInBackward >= 0) backward = std::min(backward, each.readInBackward);
  }
  if (saved.empty()) return;
  result.tensors += saved.size();
  if (wanted.kind == Kind::recompute) return recompute(unit, step, backward, saved, edits);
  for (const auto i : saved) {
    const auto& each = join_.allocations[i];
    const auto number = static_cast<std::uint32_t>(allocationAt_.at(each.what.from));
    const auto again = static_cast<std::uint32_t>(requests_.addresses.size() + 2 * i);
    const auto let = std::max(each.readInForward, std::int64_t{each.what.from});
    if (wanted.kind == Kind::bfloat16) edits.push_back({let, allocation(again + 1, each.what.requested / 2, 0), false});
    edits.push_back({let, release(number), false});
    const bool isRead = each.readInBackward >= 0;
    if (isRead) edits.push_back({each.readInBackward - 1, allocation(again, each.what.requested, 0), false});
    if (isRead && wanted.kind == Kind::bfloat16) edits.push_back({each.readInBackward - 1, release(again + 1), false});
    if (each.what.to < 0) continue;
    edits.push_back({each.what.to, {}, true});
    if (isRead) edits.push_back({each.what.to, release(again), false});
    else if (wanted.kind == Kind::bfloat16) edits.push_back({each.what.to, release(again + 1), false});
  }
}

/// The unit's forward runs once more before event `at`: with its temporaries, and without what the backward does not
/// need again.
void MemoryExperiment::recompute(const std::string& unit, std::int32_t step, std::int64_t at,
                                 const std::vector<std::size_t>& saved, Edits& edits) const {
  const std::set<std::size_t> needed(saved.begin(), saved.end());
  const auto last = saved.back();
  const bool runsAgain = at != std::numeric_limits<std::int64_t>::max();
  std::vector<std::pair<std::int64_t, AllocatorRequest>> forward;  // by the event that it repeats
  for (std::size_t i = 0; i <= last; ++i) {
    const auto& each = join_.allocations[i];
    if (each.step != step || each.recomputed) continue;
    const auto op = std::max(each.traced, each.within);
    if (op < 0) continue;
    const auto& traced = join_.trace.allocations[op];
    if (traced.backward || !isBelow(traced.module, unit)) continue;
    const auto number = static_cast<std::uint32_t>(allocationAt_.at(each.what.from));
    const auto again = static_cast<std::uint32_t>(requests_.addresses.size() + 2 * i);
    forward.emplace_back(each.what.from, allocation(again, each.what.requested, 0));
    if (needed.contains(i)) {
      edits.push_back({std::max(each.readInForward, std::int64_t{each.what.from}), release(number), false});
      if (each.what.to >= 0) edits.push_back({each.what.to, {}, true});
      if (runsAgain && each.what.to >= 0) edits.push_back({each.what.to, release(again), false});
    } else {
      const auto end = each.what.to >= 0 && each.readInBackward < 0 ? each.what.to : each.readInForward;
      forward.emplace_back(std::max(end, std::int64_t{each.what.from}), release(again));
    }
  }
  if (!runsAgain) return;
  std::ranges::stable_sort(forward, {}, [](const auto& each) { return each.first; });
  for (const auto& [event, request] : forward) edits.push_back({at - 1, request, false});
}

std::vector<MemoryWhatIf> MemoryExperiment::best(std::size_t count) const {
  std::vector<MemoryWhatIf> found;
  for (const auto& module : candidates())
    for (const auto kind : {Kind::recompute, Kind::offload, Kind::bfloat16})
      if (auto result = run({kind, module}); result.tensors > 0 && result.peakBytes < recorded_.peakBytes)
        found.push_back(std::move(result));
  std::ranges::stable_sort(found, {}, &MemoryWhatIf::peakBytes);
  if (found.size() > count) found.resize(count);
  return found;
}

}  // namespace retrograd
