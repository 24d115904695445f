#pragma once
#include <unordered_map>

#include "core/questions/memory/held_memory.h"

namespace retrograd {

/// Collects, while a history is replayed, what says for what an allocation is.
class CategoryEvidence {
 public:
  CategoryEvidence(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places);

  void see(const MemoryEvent& event, std::size_t index);
  /// The part of a training step that the event last seen belongs to, with the optimizer's as far as marks say.
  StepPart partOf(const MemoryEvent& event) const {
    return stepping_ ? StepPart::optimizer : places_.part(event.place);
  }
  /// Gives each allocation its category, once the whole history was seen.
  void classify(std::vector<HeldAllocation>& allocations) const;

 private:
  /// Requests of one size from one place.
  struct Requests {
    std::uint64_t count = 0;
    std::uint64_t follows = 0;  ///< the key of the request before the first of these, from the same place; 0: none
  };

  static std::uint64_t keyOf(std::uint32_t place, std::uint64_t size);
  bool isInStep(std::int64_t event) const;
  bool isUnwound(const HeldAllocation& allocation) const;
  StepPart endOf(const HeldAllocation& allocation) const;
  MemoryCategory categoryOf(const HeldAllocation& allocation) const;
  bool mayBeWorkspace(const HeldAllocation& allocation) const;
  void markWorkspaces(std::vector<HeldAllocation>& allocations) const;

  const MemoryPlaces& places_;
  std::vector<MemoryMark> steps_;  // begin and end of each step of an optimizer
  std::size_t nextStep_ = 0;
  bool stepping_ = false;
  std::vector<std::pair<std::size_t, std::size_t>> stepEvents_;  // of the history: first and end
  std::int64_t lastBackward_ = -1, newStep_ = -1;  // events: of the last backward, of the forward or step after one
  std::vector<std::int64_t> backwardsBegin_;       // events: the first of each backward
  std::vector<std::int64_t> stepsBegin_;           // and of what follows it: the optimizer's step, or the next forward
  std::vector<std::pair<std::int64_t, std::int64_t>> failures_;  // events: a request that failed, and the next one
  std::unordered_map<std::uint64_t, Requests> requests_;
  std::uint64_t lastKey_ = 0;
  std::uint32_t lastPlace_ = 0;
};

}  // namespace retrograd
