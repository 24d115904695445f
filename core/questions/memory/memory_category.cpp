#include "core/questions/memory/memory_category.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace retrograd {
namespace {

/// What cuBLAS takes for itself unless CUBLAS_WORKSPACE_CONFIG says otherwise: before Hopper, and on it.
constexpr std::array<std::uint64_t, 2> cublasWorkspaces{8'519'680, 33'554'432};

}  // namespace

CategoryEvidence::CategoryEvidence(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places)
    : places_(places) {
  for (const auto& mark : snapshot.marks)
    if (mark.device == static_cast<std::int64_t>(device) && snapshot.text(mark.name).starts_with("Optimizer.step"))
      steps_.push_back(mark);
  std::ranges::stable_sort(steps_, {}, &MemoryMark::time);
}

std::uint64_t CategoryEvidence::keyOf(std::uint32_t place, std::uint64_t size) {
  const auto mixed = (size ^ (std::uint64_t{place} << 40)) * 0x9e3779b97f4a7c15ULL;
  return (mixed ^ (mixed >> 31)) | 1;
}

void CategoryEvidence::see(const MemoryEvent& event, std::size_t index) {
  if (event.time != 0)
    for (; nextStep_ < steps_.size() && steps_[nextStep_].time <= event.time; ++nextStep_) {
      if (steps_[nextStep_].begins == stepping_) continue;
      stepping_ = steps_[nextStep_].begins;
      if (stepping_) stepEvents_.emplace_back(index, ~std::size_t{0});
      else stepEvents_.back().second = index;
      if (stepping_) newStep_ = static_cast<std::int64_t>(index);
    }
  const auto at = static_cast<std::int64_t>(index);
  if (event.action == MemoryAction::outOfMemory) failures_.emplace_back(at, std::numeric_limits<std::int64_t>::max());
  if (event.action != MemoryAction::alloc) return;
  if (!failures_.empty() && failures_.back().second > at) failures_.back().second = at;
  const auto part = places_.part(event.place);
  if (part == StepPart::backward || part == StepPart::recompute) {
    if (lastBackward_ <= newStep_) backwardsBegin_.push_back(at);
    lastBackward_ = at;
  } else if (part == StepPart::optimizer || (part == StepPart::forward && lastBackward_ > newStep_)) {
    if (lastBackward_ > newStep_) stepsBegin_.push_back(at);
    newStep_ = at;
  }
  const auto key = keyOf(event.place, event.size);
  auto& requests = requests_[key];
  if (requests.count++ == 0) requests.follows = lastPlace_ == event.place ? lastKey_ : 0;
  lastKey_ = key;
  lastPlace_ = event.place;
}

bool CategoryEvidence::isInStep(std::int64_t event) const {
  if (event < 0) return false;
  const auto at = static_cast<std::size_t>(event);
  const auto after = std::ranges::upper_bound(stepEvents_, at, {}, [](const auto& step) { return step.first; });
  return after != stepEvents_.begin() && at < std::prev(after)->second;
}

/// An exception lets go what was held when a request failed, whatever that was for.
bool CategoryEvidence::isUnwound(const HeldAllocation& allocation) const {
  const auto next =
      std::ranges::upper_bound(failures_, allocation.to, {}, [](const auto& each) { return each.second; });
  return next != failures_.end() && allocation.from < next->first && next->first < allocation.to;
}

/// Where a history has no stacks of what is let go, what was made meanwhile says which part of the step it is.
StepPart CategoryEvidence::endOf(const HeldAllocation& allocation) const {
  if (allocation.to < 0) return StepPart::unknown;
  if (const auto part = places_.partOfFree(allocation.freedAt); part != StepPart::unknown) return part;
  const auto isBetween = [&](const std::vector<std::int64_t>& events) {
    const auto after = std::ranges::upper_bound(events, allocation.from);
    return after != events.end() && *after < allocation.to;
  };
  const bool isForward = places_.part(allocation.place) == StepPart::forward;
  if (isBetween(stepsBegin_)) return isForward ? StepPart::unknown : StepPart::zeroGrad;
  return isForward && isBetween(backwardsBegin_) ? StepPart::backward : StepPart::unknown;
}

MemoryCategory CategoryEvidence::categoryOf(const HeldAllocation& allocation) const {
  const bool isHeld = allocation.to < 0 || isUnwound(allocation);
  const auto end = isHeld ? StepPart::unknown : endOf(allocation);
  if (allocation.from < 0 && places_.isEmpty(allocation.place))  // older than the history, which has no stack of it
    return end == StepPart::zeroGrad ? MemoryCategory::gradient : MemoryCategory::unknown;
  const auto part = places_.part(allocation.place);
  switch (part) {
    case StepPart::workspace: return MemoryCategory::workspace;
    case StepPart::optimizer: return MemoryCategory::optimizer;
    case StepPart::setup: return MemoryCategory::parameter;
    case StepPart::recompute: return MemoryCategory::recompute;
    case StepPart::zeroGrad: return MemoryCategory::gradient;
    case StepPart::unknown: return isInStep(allocation.from) ? MemoryCategory::optimizer : MemoryCategory::unknown;
    case StepPart::backward:
      if (end == StepPart::zeroGrad) return MemoryCategory::gradient;
      if (isInStep(allocation.from)) return MemoryCategory::optimizer;
      return isHeld && newStep_ > allocation.from ? MemoryCategory::gradient : MemoryCategory::temporary;
    case StepPart::forward: break;
  }
  if (isInStep(allocation.from)) return MemoryCategory::optimizer;
  if (end == StepPart::backward || end == StepPart::recompute) return MemoryCategory::activation;
  if (isHeld)
    return newStep_ > allocation.from && lastBackward_ > allocation.from ? MemoryCategory::kept
                                                                         : MemoryCategory::activation;
  return MemoryCategory::temporary;
}

/// A library takes its workspace once, in the middle of an op, and keeps it: of a size that it is known for, or next to
/// the op's result at a line of PyTorch that gives the result again later, and never the workspace.
bool CategoryEvidence::mayBeWorkspace(const HeldAllocation& allocation) const {
  if (allocation.to >= 0 || allocation.from < 0) return false;
  const auto part = places_.part(allocation.place);
  if (part != StepPart::forward && part != StepPart::backward && part != StepPart::recompute) return false;
  const auto found = requests_.find(keyOf(allocation.place, allocation.requested));
  if (found == requests_.end() || found->second.count != 1) return false;
  if (std::ranges::find(cublasWorkspaces, allocation.requested) != cublasWorkspaces.end()) return true;
  if (part == StepPart::backward || !places_.innermostIsLibrary(allocation.place)) return false;
  const auto before = requests_.find(found->second.follows);
  return before != requests_.end() && before->second.count > 2;
}

/// One for each thread at most: that of the forward, and autograd's.
void CategoryEvidence::markWorkspaces(std::vector<HeldAllocation>& allocations) const {
  std::vector<HeldAllocation*> candidates;
  for (auto& allocation : allocations)
    if (mayBeWorkspace(allocation)) candidates.push_back(&allocation);
  std::ranges::sort(candidates, {}, [](const HeldAllocation* each) { return each->from; });
  std::set<bool> threads;
  for (auto* candidate : candidates)
    if (threads.insert(places_.part(candidate->place) == StepPart::forward).second)
      candidate->category = MemoryCategory::workspace;
}

void CategoryEvidence::classify(std::vector<HeldAllocation>& allocations) const {
  for (auto& allocation : allocations) allocation.category = categoryOf(allocation);
  markWorkspaces(allocations);
}

}  // namespace retrograd
