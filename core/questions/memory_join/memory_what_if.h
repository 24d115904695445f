#pragma once
#include <string>
#include <vector>

#include "core/questions/memory/allocator_model.h"
#include "core/questions/memory_join/memory_join.h"

namespace retrograd {

/// A change to what a step keeps for its backward.
struct MemoryChange {
  enum class Kind : std::uint8_t {
    recompute,  ///< let saved tensors go, and run the module's forward again before its backward
    bfloat16,   ///< keep saved floats in half their bytes
    offload     ///< keep saved tensors on the CPU
  };
  Kind kind = Kind::recompute;
  std::string module;  ///< a path; where its children are numbered, each of them is changed for itself
};
std::string_view name(MemoryChange::Kind kind);

/// What the allocator would have held under a change.
struct MemoryWhatIf {
  MemoryChange change;
  std::size_t modules = 0;  ///< that are changed
  std::size_t tensors = 0;  ///< saved, in all steps
  std::uint64_t peakBytes = 0, peakReserved = 0;
};

/// A history whose saved tensors can be changed.
class MemoryExperiment {
 public:
  MemoryExperiment(const MemorySnapshot& snapshot, std::size_t device, const MemoryJoin& join);

  /// As the model of the allocator has it without a change.
  const ModelledMemory& asRecorded() const { return recorded_; }
  MemoryWhatIf run(const MemoryChange& change) const;
  /// Modules worth a change: lists of numbered modules, and others at the top.
  std::vector<std::string> candidates() const;
  /// The changes that free most of the peak, at most `count`, each of another kind or module.
  std::vector<MemoryWhatIf> best(std::size_t count) const;

 private:
  struct Edit;
  using Edits = std::vector<Edit>;

  bool isBelow(const std::string& module, const std::string& path) const;
  std::vector<std::string> unitsOf(const std::string& module) const;
  void change(const MemoryChange& change, const std::string& unit, std::int32_t step, Edits& edits,
              MemoryWhatIf& result) const;
  void recompute(const std::string& unit, std::int32_t step, std::int64_t at, const std::vector<std::size_t>& saved,
                 Edits& edits) const;

  const MemorySnapshot& snapshot_;
  std::size_t device_;
  const MemoryJoin& join_;
  AllocatorRequests requests_;
  ModelledMemory recorded_;
  std::unordered_map<std::int64_t, std::size_t> allocationAt_;  // of the requests, by event
};

}  // namespace retrograd
