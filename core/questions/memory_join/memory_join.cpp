#include "core/questions/memory_join/memory_join.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/enum_array.h"
#include "core/questions/memory_join/code_lines.h"
#include "core/questions/memory_join/in_order.h"

namespace retrograd {
namespace {

/// Texts as numbers, so that each is compared once.
class LineKeys {
 public:
  static constexpr std::int32_t none = -1;

  std::int32_t of(const std::string& line) {
    return line.empty() ? none : keys_.emplace(line, static_cast<std::int32_t>(keys_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, std::int32_t> keys_;
};

struct LinePair {
  std::int32_t line = LineKeys::none, innermost = LineKeys::none;
};

/// A forward and its backward in the history: positions in MemoryJoin::allocations.
struct HistoryStep {
  std::vector<std::size_t> forward, backward;
  /// What a checkpoint made again, and how many allocations of the backward came before.
  struct Region {
    std::vector<std::size_t> made;
    std::size_t before = 0;
  };
  std::vector<Region> regions;
  std::int64_t backwardFrom = -1, to = -1;  ///< events
  std::unordered_set<std::int32_t> found;   ///< in TracedStep::allocations
};

class Joiner {
 public:
  Joiner(const HeldMemory& history, const MemoryPlaces& places, TracedStep trace) : places_(places) {
    join_.trace = std::move(trace);
    join_.allocations.reserve(history.allocations.size());
    for (const auto& allocation : history.allocations) join_.allocations.push_back({.what = allocation});
  }

  MemoryJoin run() {
    readLines();
    findSteps();
    joinParameters();
    joinStates();
    numberSteps();
    joinByNodes(places_, join_);
    joinByCode(places_, join_);
    for (auto& step : steps_) joinStep(step);
    confirmWithin();
    for (const auto& step : steps_) join_.steps += step.backwardFrom >= 0 ? 1 : 0;
    for (const auto& step : steps_)
      join_.forwardEnds.push_back(step.forward.empty() ? HeldAllocation::outside : what(step.forward.back()).from);
    return std::move(join_);
  }

 private:
  const HeldAllocation& what(std::size_t i) const { return join_.allocations[i].what; }
  StepPart partOf(std::size_t i) const { return places_.part(what(i).place); }

  void readLines() {
    for (const auto& allocation : join_.trace.allocations) {
      tracedLines_.push_back({keys_.of(allocation.line), keys_.of(allocation.innermost)});
      (allocation.backward ? tracedBackward_ : tracedForward_)
          .push_back(static_cast<std::size_t>(&allocation - join_.trace.allocations.data()));
    }
    for (std::size_t i = 0; i < tracedForward_.size(); ++i)
      lastReads_.emplace_back(join_.trace.allocations[tracedForward_[i]].lastRead, i);
    std::ranges::sort(lastReads_);
  }

  const LinePair& linesAt(std::uint32_t place) {
    const auto [found, isNew] = placeLines_.try_emplace(place);
    if (isNew) found->second = {keys_.of(places_.shortLine(place)), keys_.of(places_.innermostLine(place))};
    return found->second;
  }

  void findSteps() {
    for (std::size_t i = 0; i < join_.allocations.size(); ++i) {
      const auto category = what(i).category;
      if (what(i).from < 0 || category == MemoryCategory::optimizer || category == MemoryCategory::workspace) continue;
      switch (partOf(i)) {
        case StepPart::forward:
          if (steps_.empty() || steps_.back().backwardFrom >= 0) steps_.emplace_back();
          steps_.back().forward.push_back(i);
          break;
        case StepPart::backward:
        case StepPart::recompute: addToBackward(i); break;
        default: continue;
      }
    }
  }

  void addToBackward(std::size_t i) {
    if (steps_.empty()) return;  // the history begins in the middle of a step
    auto& step = steps_.back();
    if (step.backwardFrom < 0) step.backwardFrom = what(i).from;
    step.to = what(i).from;
    if (partOf(i) == StepPart::backward) {
      step.backward.push_back(i);
      return;
    }
    if (step.regions.empty() || step.regions.back().before != step.backward.size())
      step.regions.push_back({{}, step.backward.size()});
    step.regions.back().made.push_back(i);
  }

  void joinParameters() {
    std::vector<std::size_t> made;
    for (std::size_t i = 0; i < join_.allocations.size(); ++i)
      if (what(i).from >= 0 && what(i).category == MemoryCategory::parameter) made.push_back(i);
    alignParameters(made, 0);
  }

  /// An optimizer makes its states parameter by parameter, each kind at a line of its own.
  void joinStates() {
    std::map<std::uint32_t, std::vector<std::size_t>> byPlace;
    for (std::size_t i = 0; i < join_.allocations.size(); ++i)
      if (what(i).from >= 0 && what(i).category == MemoryCategory::optimizer && isKept(what(i)))
        byPlace[what(i).place].push_back(i);
    for (const auto& [place, made] : byPlace) alignParameters(made, made.size() - made.size() / 10);
  }

  /// Held longer than the optimizer's step that made it.
  bool isKept(const HeldAllocation& allocation) const {
    return allocation.to < 0 || places_.part(allocation.freedAt) != StepPart::optimizer;
  }

  /// Pairs allocations with the parameters where at least so many pairs are found.
  void alignParameters(const std::vector<std::size_t>& made, std::size_t least) {
    const auto& parameters = join_.trace.parameters;
    const auto pairs = InOrder::pairs(made.size(), parameters.size(), [&](std::size_t i, std::size_t j) {
      return what(made[i]).requested == parameters[j].bytes ? 1 : 0;
    });
    if (static_cast<std::size_t>(std::ranges::count_if(pairs, [](auto pair) { return pair >= 0; })) < least) return;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (pairs[i] < 0) continue;
      auto& allocation = join_.allocations[made[i]];
      allocation.level = JoinLevel::aligned;
      allocation.parameter = pairs[i];
    }
  }

  void joinStep(HistoryStep& step) {
    align(step.forward, tracedForward_, [&](std::size_t i, std::size_t j) { return forwardWeight(step, i, j); });
    // Where no line of the forward agrees, orders and sizes of the backward that do are another program's by chance.
    if (std::ranges::none_of(step.forward, [&](auto i) { return join_.allocations[i].traced >= 0; })) return;
    align(step.backward, tracedBackward_, [&](std::size_t i, std::size_t j) { return backwardWeight(step, i, j); });
    for (const auto& region : step.regions) joinRegion(step, region);
    for (const auto* made : {&step.forward, &step.backward}) findWithin(*made);
    findLastReads(step);
  }

  void numberSteps() {
    for (std::size_t number = 0; number < steps_.size(); ++number) {
      const auto& step = steps_[number];
      for (const auto* made : {&step.forward, &step.backward})
        for (const auto i : *made) join_.allocations[i].step = static_cast<std::int32_t>(number);
      for (const auto& region : step.regions)
        for (const auto i : region.made) {
          join_.allocations[i].step = static_cast<std::int32_t>(number);
          join_.allocations[i].recomputed = true;
        }
    }
  }

  template <class Weight>
  void align(const std::vector<std::size_t>& made, const std::vector<std::size_t>& traced, const Weight& weight) {
    const auto pairs = InOrder::pairs(made.size(), traced.size(),
                                      [&](std::size_t i, std::size_t j) { return weight(made[i], traced[j]); });
    for (std::size_t i = 0; i < made.size(); ++i) {
      auto& allocation = join_.allocations[made[i]];
      if (pairs[i] < 0 || allocation.level == JoinLevel::exact || allocation.inCode) continue;
      allocation.level = JoinLevel::aligned;
      allocation.traced = static_cast<std::int32_t>(traced[pairs[i]]);
    }
  }

  /// The more bytes, the more a pair weighs; what else agrees decides between pairs of one size.
  static int sizeWeight(std::uint64_t bytes) { return 16 + static_cast<int>(std::bit_width(bytes)); }

  bool linesAgree(std::size_t i, std::size_t j, bool& innermost) {
    const auto &there = linesAt(what(i).place), &here = tracedLines_[j];
    innermost = there.innermost == here.innermost;
    return here.line != LineKeys::none && there.line == here.line;
  }

  int forwardWeight(const HistoryStep& step, std::size_t i, std::size_t j) {
    const auto& traced = join_.trace.allocations[j];
    bool innermost = false;
    if (what(i).requested != traced.bytes || !linesAgree(i, j, innermost)) return 0;
    const bool staysTraced = traced.use != TracedAllocation::Use::temporary;
    const bool stays = what(i).to < 0 || (step.backwardFrom >= 0 && what(i).to >= step.backwardFrom);
    return sizeWeight(traced.bytes) + (innermost ? 6 : 0) + (stays == staysTraced ? 8 : 0);
  }

  /// Autograd's thread has no lines: that it is autograd's is what agrees.
  int backwardWeight(const HistoryStep& step, std::size_t i, std::size_t j) {
    const auto& traced = join_.trace.allocations[j];
    if (what(i).requested != traced.bytes) return 0;
    const bool stays = what(i).to < 0 || what(i).to > step.to;
    const bool agrees = stays == (traced.use == TracedAllocation::Use::gradient);
    return sizeWeight(traced.bytes) + (agrees ? 8 : 0) - (traced.mayReuse ? 15 : 0);
  }

  /// A checkpoint makes again what the ops before one of the backward need: those of the forward up to the op whose
  /// derivative comes next.
  void joinRegion(const HistoryStep& step, const HistoryStep::Region& region) {
    const auto end = forwardEnd(step, region);
    const auto count = std::min(end, 4 * region.made.size() + 64);
    std::vector<std::size_t> backwards(region.made.rbegin(), region.made.rend()), traced;
    for (std::size_t k = 0; k < count; ++k) traced.push_back(tracedForward_[end - 1 - k]);
    align(backwards, traced, [&](std::size_t i, std::size_t j) {
      bool innermost = false;
      const auto& allocation = join_.trace.allocations[j];
      if (what(i).requested != allocation.bytes || !linesAgree(i, j, innermost)) return 0;
      return sizeWeight(allocation.bytes) + (innermost ? 6 : 0) +
             (allocation.use == TracedAllocation::Use::saved ? 8 : 0);
    });
  }

  /// How many allocations of the traced forward come before the one that the backward reads next after a region.
  std::size_t forwardEnd(const HistoryStep& step, const HistoryStep::Region& region) const {
    for (auto k = region.before; k < step.backward.size(); ++k) {
      const auto traced = join_.allocations[step.backward[k]].traced;
      if (traced < 0) continue;
      const auto position = join_.trace.allocations[traced].position;
      std::size_t end = 0;
      auto read = std::ranges::lower_bound(lastReads_, position, {}, [](const auto& each) { return each.first; });
      for (; read != lastReads_.end() && read->first < position + nearby; ++read) end = std::max(end, read->second + 1);
      if (end > 0) return std::min(end + 4, tracedForward_.size());
    }
    return tracedForward_.size();
  }

  /// An allocation after an op's result that is gone before the next op's is the op's own, as far as the order says.
  void findWithin(const std::vector<std::size_t>& made) {
    auto last = TracedAllocation::none;
    std::size_t begin = 0;
    const auto close = [&](std::size_t end, std::int64_t event) {
      for (auto k = begin; k < end && last >= 0; ++k)
        if (auto& each = join_.allocations[made[k]];
            each.traced < 0 && !each.inCode && each.what.to >= 0 && each.what.to <= event)
          each.within = last, ++within_[keyWithin(each)];
    };
    for (std::size_t k = 0; k < made.size(); ++k) {
      const auto& each = join_.allocations[made[k]];
      if (each.traced < 0) continue;
      close(k, each.what.from);
      last = each.traced;
      begin = k + 1;
    }
  }

  std::string keyWithin(const JoinedAllocation& each) const {
    const auto& traced = join_.trace.allocations[each.within];
    return traced.op + " " + std::to_string(traced.bytes) + " " + std::to_string(each.what.requested);
  }

  /// An op of one kind and size takes the same for itself each time: what it took just once is not known to be its own.
  void confirmWithin() {
    for (auto& each : join_.allocations) {
      if (each.within < 0 || each.level == JoinLevel::exact) continue;
      if (within_[keyWithin(each)] > 1) each.level = JoinLevel::aligned;
      else each.within = TracedAllocation::none;
    }
  }

  /// When the op that reads each allocation last had run: at the first event of a later op.
  void findLastReads(HistoryStep& step) {
    std::vector<std::pair<std::size_t, std::int64_t>> events;  // positions of ops with their first events
    for (const auto* made : {&step.forward, &step.backward})
      for (const auto i : *made)
        if (const auto& each = join_.allocations[i]; each.traced >= 0)
          step.found.insert(each.traced),
              events.emplace_back(join_.trace.allocations[each.traced].position, each.what.from);
    const auto find = [&](std::size_t i) {
      auto& each = join_.allocations[i];
      if (each.traced < 0) return;
      const auto& traced = inTheEnd(static_cast<std::size_t>(each.traced), step);
      if (traced.use == TracedAllocation::Use::gradient || traced.use == TracedAllocation::Use::result) return;
      const auto first = [](const auto& event) { return event.first; };
      const auto after = std::ranges::upper_bound(events, traced.lastRead, {}, first);
      // Kernels that do several ops have an order of their own, and the code may put other values into the memory.
      if (!each.inCode) each.couldBeFreed = after == events.end() ? step.to : after->second;
      if (traced.use != TracedAllocation::Use::saved || traced.firstBackward == 0) return;
      const auto forward = std::ranges::upper_bound(events, traced.lastForward, {}, first);
      each.readInForward = forward == events.end() ? step.to : forward->second;
      const auto backward = std::ranges::lower_bound(events, traced.firstBackward, {}, first);
      each.readInBackward = backward == events.end() ? step.to : backward->second;
    };
    for (const auto* made : {&step.forward, &step.backward}) std::ranges::for_each(*made, find);
    for (const auto& region : step.regions) std::ranges::for_each(region.made, find);
  }

  /// What the memory holds last: autograd adds to a gradient in place, so that the sum has no allocation of its own.
  const TracedAllocation& inTheEnd(std::size_t traced, const HistoryStep& step) const {
    const auto* last = &join_.trace.allocations[traced];
    while (last->continuedBy >= 0 && !step.found.contains(last->continuedBy))
      last = &join_.trace.allocations[last->continuedBy];
    return *last;
  }

  static constexpr std::size_t nearby = 8;  // ops

  const MemoryPlaces& places_;
  MemoryJoin join_;
  LineKeys keys_;
  std::unordered_map<std::uint32_t, LinePair> placeLines_;
  std::vector<LinePair> tracedLines_;
  std::vector<std::size_t> tracedForward_, tracedBackward_;
  std::vector<std::pair<std::size_t, std::size_t>> lastReads_;  // of the forward: position, and which in tracedForward_
  std::unordered_map<std::string, std::size_t> within_;         // how often an op took so much for itself
  std::vector<HistoryStep> steps_;
};

}  // namespace

std::string_view name(JoinLevel level) {
  static constexpr EnumArray<JoinLevel, std::string_view, joinLevelCount> names{"unknown", "aligned", "exact"};
  return names[level];
}

MemoryJoin joinMemory(const HeldMemory& history, const MemoryPlaces& places, TracedStep trace) {
  return Joiner(history, places, std::move(trace)).run();
}

bool agrees(const MemoryJoin& join) {
  return std::ranges::any_of(join.allocations, [](const JoinedAllocation& each) { return each.traced >= 0; });
}

BoundSymbolId makerOf(const MemoryJoin& join, const JoinedAllocation& allocation) {
  const auto traced = std::max(allocation.traced, allocation.within);
  return traced < 0 ? BoundSymbolId() : join.trace.allocations[traced].maker;
}

std::string holderOf(const MemoryJoin& join, const JoinedAllocation& allocation) {
  using Use = TracedAllocation::Use;
  if (allocation.parameter >= 0)
    return allocation.what.category == MemoryCategory::optimizer ? "optimizer" : "parameter";
  // A library's own outlives the op that asked for it.
  if (allocation.what.category == MemoryCategory::workspace) return std::string(name(MemoryCategory::workspace));
  if (allocation.within >= 0) {
    const auto& traced = join.trace.allocations[allocation.within];
    return "workspace of " + (traced.module.empty() ? traced.op : traced.op + " of " + traced.module);
  }
  if (allocation.traced < 0) {
    if (allocation.recomputed && allocation.what.to >= 0) return "recomputation";
    const auto category = allocation.what.category;
    const bool isSure = category == MemoryCategory::parameter || category == MemoryCategory::optimizer ||
                        category == MemoryCategory::workspace || category == MemoryCategory::gradient;
    return isSure ? std::string(name(category)) : "unknown";
  }
  const auto& traced = join.trace.allocations[allocation.traced];
  if (allocation.recomputed) return "recomputation";
  if (traced.use == Use::gradient) return "gradient";
  if (traced.use == Use::result) return "result";
  if (traced.use == Use::temporary) return traced.backward ? "temporary of the backward" : "temporary of the forward";
  auto text = "saved for " + (traced.reader.empty() ? std::string("the backward") : traced.reader);
  return traced.readerModule.empty() ? text : text + " of " + traced.readerModule;
}

std::string layerOf(const std::string& module) {
  for (std::size_t begin = 0; begin < module.size();) {
    const auto end = std::min(module.find('.', begin), module.size());
    if (module[begin] >= '0' && module[begin] <= '9') return module.substr(0, end);
    begin = end + 1;
  }
  return module.substr(0, module.find('.'));
}

std::vector<MemoryGroup> bytesByLayer(const MemoryJoin& join, std::int64_t event) {
  std::map<std::string, MemoryGroup> layers;
  for (const auto& each : join.allocations) {
    if (each.traced < 0 || !each.what.isHeldAfter(event)) continue;
    const auto& traced = join.trace.allocations[each.traced];
    if (traced.backward) continue;
    auto& layer = layers[layerOf(traced.module)];
    layer.bytes += each.what.size;
    ++layer.count;
  }
  std::vector<MemoryGroup> found;
  for (auto& [name, layer] : layers) {
    layer.name = name.empty() ? "(no module)" : name;
    found.push_back(std::move(layer));
  }
  return found;
}

JoinedMoment joinedMoment(const MemoryJoin& join, std::int64_t event) {
  JoinedMoment moment;
  std::map<std::string, MemoryGroup> holders;
  for (std::size_t i = 0; i < join.allocations.size(); ++i) {
    const auto& each = join.allocations[i];
    if (!each.what.isHeldAfter(event)) continue;
    moment.blocks.push_back(i);
    moment.bytes[each.level] += each.what.size;
    auto& holder = holders[holderOf(join, each)];
    holder.bytes += each.what.size;
    holder.requested += each.what.requested;
    ++holder.count;
  }
  for (auto& [text, holder] : holders) {
    holder.name = text;
    moment.holders.push_back(holder);
  }
  std::ranges::stable_sort(moment.holders, std::greater(), &MemoryGroup::bytes);
  std::ranges::stable_sort(moment.blocks, std::greater(), [&](auto i) { return join.allocations[i].what.size; });
  return moment;
}

}  // namespace retrograd
