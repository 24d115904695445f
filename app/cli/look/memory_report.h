#pragma once
// What `retrograd memory` was asked for and found; memory.cpp asks, the others print.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/questions/memory/memory_groups.h"
#include "core/questions/memory_join/memory_what_if.h"
#include "core/questions/memory_join/recorded_memory.h"

namespace retrograd::cli {

struct MemoryArguments {
  std::string path, other, trace, at = "peak", by = "line", format = "text";
  std::optional<std::uint64_t> device;
  std::size_t rows = 12, choices = 0;
  std::vector<std::string> whatIf;
  bool model = false;
};

/// A snapshot and what is asked of it.
struct OpenedMemory {
  std::unique_ptr<const MemorySnapshot> snapshot;
  std::unique_ptr<const MemoryPlaces> places;
  std::size_t device = 0;
  HeldMemory held;
  std::vector<MemoryGroup> groups, categories;
  std::optional<MemoryJoin> join;  ///< with --trace
  JoinedMoment joined;
  std::vector<MemoryFinding> findings;
  std::optional<ModelledMemory> model;  ///< with --model, --what-if or --choices
  std::vector<MemoryWhatIf> whatIfs;
};

void printMemoryJson(const MemoryArguments& arguments, const OpenedMemory& opened);
void printMemoryText(const MemoryArguments& arguments, const OpenedMemory& opened);
/// Two snapshots side by side.
void printMemoryPair(const MemoryArguments& arguments, const OpenedMemory& before, const OpenedMemory& after);

}  // namespace retrograd::cli
