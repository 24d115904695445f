#include "core/questions/memory_join/graph_lines.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace retrograd {
namespace {

/// The lines of one generated file at which something is made.
struct GeneratedFile {
  std::vector<std::pair<std::int32_t, std::size_t>> made;  ///< line, and which of MemoryJoin::allocations
};

/// What nodes of a graph make: bytes, and which of TracedStep::allocations.
using NodeResults = std::multimap<std::int32_t, std::size_t>;

class NodeJoiner {
 public:
  NodeJoiner(const MemoryPlaces& places, MemoryJoin& join) : places_(places), join_(join) {}

  void run() {
    const auto& traced = join_.trace.allocations;
    for (std::size_t i = 0; i < traced.size(); ++i) {
      if (traced[i].node >= 0) results_[traced[i].backward].emplace(traced[i].node, i);
      byName_[traced[i].backward].emplace(traced[i].name, i);
    }
    if (results_[0].empty() && results_[1].empty()) return;
    for (std::size_t i = 0; i < join_.allocations.size(); ++i) {
      const auto place = join_.allocations[i].what.place;
      if (const auto node = places_.graphNode(place); !node.empty()) joinByName(i, std::string(node));
      else if (const auto [file, line] = places_.graphLine(place); line >= 0) files_[file].made.emplace_back(line, i);
    }
    for (const auto& [file, what] : files_) joinFile(what);
  }

 private:
  bool sizeAgrees(std::size_t made, std::size_t traced) const {
    return join_.allocations[made].what.requested == join_.trace.allocations[traced].bytes;
  }

  void joinByName(std::size_t i, const std::string& node) {
    const bool isBackward = places_.part(join_.allocations[i].what.place) == StepPart::backward;
    const auto found = byName_[isBackward].find(node);
    if (found == byName_[isBackward].end()) return;
    take(i, found->second, sizeAgrees(i, found->second));
  }

  void take(std::size_t i, std::size_t traced, bool isResult) {
    auto& allocation = join_.allocations[i];
    allocation.level = JoinLevel::exact;
    (isResult ? allocation.traced : allocation.within) = static_cast<std::int32_t>(traced);
  }

  /// The line of the first node, as most of the sizes say: for which graph, and how many distinct lines agree.
  struct Base {
    std::int32_t line = 0;
    std::size_t graph = 0, agreeing = 0;
  };

  Base baseOf(const GeneratedFile& file, std::size_t graph) const {
    std::map<std::int32_t, std::size_t> votes;
    std::set<std::int32_t> voters;
    for (const auto& [line, i] : file.made) {
      if (voters.size() >= mostVoters) break;
      if (!voters.insert(line).second) continue;
      for (const auto& [node, traced] : results_[graph])
        if (sizeAgrees(i, traced)) ++votes[line - node];
    }
    Base base{0, graph, 0};
    for (const auto& [line, count] : votes)
      if (count > base.agreeing) base = {line, graph, count};
    return base;
  }

  void joinFile(const GeneratedFile& file) {
    auto base = baseOf(file, 0);
    if (const auto other = baseOf(file, 1); other.agreeing > base.agreeing) base = other;
    std::set<std::int32_t> lines, known;
    for (const auto& [line, i] : file.made) {
      lines.insert(line);
      if (results_[base.graph].contains(line - base.line)) known.insert(line);
    }
    if (base.agreeing < 2 || known.size() != lines.size()) return;  // another graph's code
    std::unordered_map<std::size_t, std::int64_t> taken;            // which results are held now, until which event
    for (const auto& [line, i] : file.made) {
      const auto [first, end] = results_[base.graph].equal_range(line - base.line);
      auto result = std::find_if(first, end, [&](const auto& each) {
        const auto before = taken.find(each.second);
        return sizeAgrees(i, each.second) && (before == taken.end() || before->second < roundOf(i));
      });
      if (result != end) taken[result->second] = roundOf(i);
      take(i, result == end ? first->second : result->second, result != end);
    }
  }

  /// One run of the graph: each result is made once in it.
  std::int64_t roundOf(std::size_t i) const { return join_.allocations[i].step; }

  static constexpr std::size_t mostVoters = 64;

  const MemoryPlaces& places_;
  MemoryJoin& join_;
  NodeResults results_[2];
  std::unordered_map<std::string, std::size_t> byName_[2];
  std::map<std::int32_t, GeneratedFile> files_;
};

}  // namespace

void joinByNodes(const MemoryPlaces& places, MemoryJoin& join) { NodeJoiner(places, join).run(); }

}  // namespace retrograd
