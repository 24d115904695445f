#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "core/base/byte_size.h"
#include "core/base/enum_array.h"
#include "core/questions/memory/address_layout.h"
#include "core/questions/memory/memory_finding.h"

namespace retrograd {
namespace {

using Kind = MemoryFinding::Kind;

/// Shares of the peak below which nothing is worth a line.
constexpr double leastShare = 0.001, roundingShare = 0.1, workspaceShare = 0.1, fragmentShare = 0.1;

std::string sizeText(std::uint64_t bytes) { return bytesText(static_cast<std::int64_t>(bytes)); }

bool isMuch(std::uint64_t part, std::uint64_t whole, double share) {
  return static_cast<double>(part) > share * static_cast<double>(whole);
}

/// Memory of steps that are over: requests of one size from one place.
struct Leaking {
  std::uint64_t bytes = 0;
  std::set<std::size_t> steps;
};

bool mayLeak(MemoryCategory category) {
  return category == MemoryCategory::kept || category == MemoryCategory::activation ||
         category == MemoryCategory::recompute || category == MemoryCategory::temporary;
}

void findLeaks(std::vector<MemoryFinding>& found, const MemoryPlaces& places, const HeldMemory& history) {
  if (history.steps.size() < 2) return;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Leaking> requests;
  for (const auto& allocation : history.end) {
    if (allocation.from < 0 || !mayLeak(allocation.category)) continue;
    const auto after = std::ranges::upper_bound(history.steps, allocation.from, {}, &MemoryStep::from);
    if (after == history.steps.begin()) continue;
    auto& leak = requests[{allocation.place, allocation.requested}];
    leak.bytes += allocation.size;
    leak.steps.insert(static_cast<std::size_t>(after - history.steps.begin()));
  }
  std::map<std::string, Leaking> lines;
  for (const auto& [request, leak] : requests) {
    if (leak.steps.size() < 2) continue;
    auto& line = lines[places.line(request.first)];
    line.bytes += leak.bytes;
    line.steps.insert(leak.steps.begin(), leak.steps.end());
  }
  for (const auto& [line, leak] : lines)
    if (isMuch(leak.bytes, history.peakBytes, leastShare))
      found.push_back({Kind::leak, leak.bytes,
                       fmt::format("{} made in {} steps at {} is still held: a variable there, or a graph that it "
                                   "belongs to, keeps it",
                                   sizeText(leak.bytes), leak.steps.size(), line),
                       line});
}

/// The first step makes what stays for good, so growth is counted from the second on.
void findGrowth(std::vector<MemoryFinding>& found, const HeldMemory& history) {
  const auto& steps = history.steps;
  std::vector<std::uint64_t> starts;
  for (std::size_t i = 1; i < steps.size(); ++i) starts.push_back(steps[i].startBytes);
  if (!steps.empty() && steps.back().isWhole) starts.push_back(history.endBytes);
  if (starts.size() < 3 || std::ranges::adjacent_find(starts, std::greater_equal()) != starts.end()) return;
  const auto each = (starts.back() - starts.front()) / (starts.size() - 1);
  if (!isMuch(each, history.peakBytes, leastShare)) return;
  found.push_back({Kind::growth,
                   each,
                   fmt::format("each step leaves {} more than the one before: {} after the first step, {} after {}",
                               sizeText(each), sizeText(starts.front()), sizeText(starts.back()), starts.size()),
                   {}});
}

void findRounding(std::vector<MemoryFinding>& found, const HeldMemory& moment) {
  const auto rounding = moment.bytes - std::min(moment.requested, moment.bytes);
  if (!isMuch(rounding, moment.bytes, roundingShare)) return;
  found.push_back({Kind::rounding,
                   rounding,
                   fmt::format("{} of {} are the allocator's rounding: many small tensors, or blocks that are not cut",
                               sizeText(rounding), sizeText(moment.bytes)),
                   {}});
}

void findWorkspaces(std::vector<MemoryFinding>& found, const MemoryPlaces& places, const HeldMemory& moment) {
  std::uint64_t libraries = 0;
  for (const auto& allocation : moment.allocations) {
    if (allocation.category == MemoryCategory::workspace) libraries += allocation.size;
    const bool isShort = allocation.category == MemoryCategory::temporary && allocation.from == moment.event &&
                         allocation.to >= 0 && allocation.to - allocation.from <= 8;
    if (!isShort || !isMuch(allocation.size, moment.bytes, workspaceShare)) continue;
    found.push_back({Kind::workspace, allocation.size,
                     fmt::format("the peak is one op's own {} at {}, let go {} events later", sizeText(allocation.size),
                                 places.line(allocation.place), allocation.to - allocation.from),
                     places.line(allocation.place)});
  }
  if (isMuch(libraries, moment.bytes, workspaceShare))
    found.push_back({Kind::workspace,
                     libraries,
                     fmt::format("libraries keep {} as workspaces; CUBLAS_WORKSPACE_CONFIG=:4096:2 makes cuBLAS take "
                                 "less",
                                 sizeText(libraries)),
                     {}});
}

/// Free memory at a moment, with the words for it.
class FreePieces {
 public:
  FreePieces(const MemorySnapshot& snapshot, const MemoryPlaces& places, const HeldMemory& moment,
             const std::optional<MemoryRequest>& request = {})
      : places_(places),
        moment_(moment),
        layout_(addressLayout(moment, moment.event)),
        free_(freeMemory(layout_, request, snapshot.settings)) {}

  const FreeMemory& free() const { return free_; }
  std::uint64_t largest() const { return free_.largest ? layout_.pieces[*free_.largest].size : 0; }
  /// Of those that the request may have: "the largest free piece has 4.0 MiB, between 13 MiB of net.py:5 in keep and
  /// the segment's border"
  std::string largestText() const {
    const auto [before, behind] = neighboursOf(layout_, *free_.largest);
    return fmt::format("the largest free piece has {}, between {} and {}", sizeText(largest()), neighbourText(before),
                       neighbourText(behind));
  }

 private:
  std::string neighbourText(const LaidOutPiece* piece) const {
    if (piece == nullptr || piece->allocation == LaidOutPiece::free) return "the segment's border";
    const auto& block = moment_.allocations[piece->allocation];
    return fmt::format("{} of {}", sizeText(block.size), places_.line(block.place));
  }

  const MemoryPlaces& places_;
  const HeldMemory& moment_;
  AddressLayout layout_;
  FreeMemory free_;
};

/// Free memory at the peak that is in more than one piece, none of which holds half of it.
void findFragments(std::vector<MemoryFinding>& found, const MemorySnapshot& snapshot, const MemoryPlaces& places,
                   const HeldMemory& moment) {
  const FreePieces pieces(snapshot, places, moment);
  const auto& free = pieces.free();
  if (!isMuch(free.bytes, moment.bytes, fragmentShare) || 2 * pieces.largest() > free.bytes) return;
  found.push_back(
      {Kind::fragmentation,
       free.bytes,
       fmt::format("{} are reserved and free in {} pieces; {}", sizeText(free.bytes), free.count, pieces.largestText()),
       {}});
}

}  // namespace

Claim claimOf(const MemoryFinding& finding) {
  const bool isSuspicion =
      finding.kind == Kind::leak || finding.kind == Kind::growth || finding.kind == Kind::fragmentation;
  return {.by = Producer::books,
          .severity = isSuspicion ? Severity::suspicion : Severity::note,
          .kind = std::string(name(finding.kind)),
          .sentence = finding.text,
          .line = finding.line,
          .command = "recorded-memory"};
}

void worstFirst(std::vector<MemoryFinding>& findings) {
  std::ranges::stable_sort(findings, std::greater(), [](const MemoryFinding& finding) {
    return std::pair(claimOf(finding).severity, finding.bytes);
  });
}

std::string_view name(MemoryFinding::Kind kind) {
  static constexpr EnumArray<Kind, std::string_view, memoryFindingCount> names{
      "leak",        "growth",     "fragmentation", "rounding",  "workspace",
      "saved_twice", "never_read", "held_late",     "wide_dtype"};
  return names[kind];
}

std::vector<MemoryFinding> memoryFindings(const MemorySnapshot& snapshot, std::size_t device,
                                          const MemoryPlaces& places, const HeldMemory& moment) {
  std::vector<MemoryFinding> found;
  findLeaks(found, places, moment);
  findGrowth(found, moment);
  findRounding(found, moment);
  findWorkspaces(found, places, moment);
  if (auto failed = whyNotFit(snapshot, device, places, moment)) found.push_back(std::move(*failed));
  else findFragments(found, snapshot, places, moment);
  worstFirst(found);
  return found;
}

std::optional<MemoryFinding> whyNotFit(const MemorySnapshot& snapshot, std::size_t device, const MemoryPlaces& places,
                                       const HeldMemory& failed) {
  const auto event = failed.event < 0 ? std::nullopt : eventAt(snapshot, device, failed.event);
  if (!event || event->action != MemoryAction::outOfMemory) return std::nullopt;
  const FreePieces pieces(snapshot, places, failed, MemoryRequest{event->size, event->stream});
  const auto& free = pieces.free();
  auto text = fmt::format("{} asked for at {} did not fit: {} are held, {} are reserved and free in {} {}",
                          sizeText(event->size), places.line(event->place), sizeText(failed.bytes),
                          sizeText(free.bytes), free.count, free.count == 1 ? "piece" : "pieces");
  const bool isSmall = BlockSizes::small(event->size);
  for (const auto& [bytes, whose] :
       {std::pair{free.ofOtherSizes, isSmall ? "requests above 1 MiB" : "requests up to 1 MiB"},
        std::pair{free.ofOtherStreams, "other streams"}, std::pair{free.ofOtherPools, "CUDA graphs and other pools"}})
    if (bytes > 0) text += fmt::format(", {} of that for {}", sizeText(bytes), whose);
  text += fmt::format(", the device had {} free", sizeText(event->address));
  const BlockSizes sizes(snapshot.settings);
  if (const auto segment = BlockSizes::segment(sizes.rounded(event->size)); segment <= event->address)
    text += fmt::format(
        " where a new segment takes {}: a limit of the process, such as set_per_process_memory_fraction, "
        "or the driver refused it",
        sizeText(segment));
  else if (event->size <= event->address && !sizes.expandable())
    text += fmt::format(" where a new segment takes {}", sizeText(segment));
  if (free.largest) text += "; " + pieces.largestText();
  return MemoryFinding{Kind::fragmentation, event->size, std::move(text), places.line(event->place)};
}

}  // namespace retrograd
