#include "core/questions/memory_join/code_lines.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

namespace retrograd {
namespace {

class CodeJoiner {
 public:
  CodeJoiner(const MemoryPlaces& places, MemoryJoin& join) : places_(places), join_(join) {}

  void run() {
    if (join_.trace.code.empty()) return;
    for (const auto& code : join_.trace.code) {
      files_.emplace(code.file, &code);
      for (const auto& line : code.lines) results_.insert(line.allocation);
    }
    for (std::size_t i = 0; i < join_.trace.allocations.size(); ++i) {
      const auto& traced = join_.trace.allocations[i];
      if (!results_.contains(static_cast<std::int32_t>(i)))
        inner_[{traced.backward, traced.op, traced.bytes}].push_back(static_cast<std::int32_t>(i));
    }
    for (std::size_t i = 0; i < join_.allocations.size(); ++i)
      if (const auto [code, line] = codeOf(join_.allocations[i].what.place); code != nullptr) joinLine(*code, line, i);
  }

 private:
  using Place = std::pair<const TracedCode*, std::int32_t>;

  /// The innermost frame that is of code which is known.
  Place codeOf(std::uint32_t place) {
    const auto entry = codes_.try_emplace(place);
    auto& found = entry.first->second;
    if (entry.second)
      places_.findFrame(place, [&](std::string_view file, std::int32_t line) {
        const auto code = files_.find(file.substr(file.rfind('/') + 1));
        if (code == files_.end()) return false;
        found = {code->second, line};
        return true;
      });
    return found;
  }

  bool sizeAgrees(const JoinedAllocation& made, std::int32_t traced) const {
    return made.what.requested == join_.trace.allocations[traced].bytes;
  }

  void joinLine(const TracedCode& code, std::int32_t number, std::size_t i) {
    auto& made = join_.allocations[i];
    if (made.level == JoinLevel::exact) return;
    made.inCode = true;
    auto& taken = taken_[{made.step, &code}];
    const auto first = std::ranges::lower_bound(code.lines, number, {}, &TracedCode::Line::line);
    const auto lines =
        std::span(first, std::ranges::upper_bound(first, code.lines.end(), number, {}, &TracedCode::Line::line));
    for (const auto& line : lines)
      if (line.allocation >= 0 && sizeAgrees(made, line.allocation) && taken.insert(line.allocation).second)
        return take(made, line.allocation, line.isExact ? JoinLevel::exact : JoinLevel::aligned);
    for (const auto& line : lines)
      if (const auto inner = line.allocation < 0 ? innerResult(code, line, made, taken) : TracedAllocation::none;
          inner >= 0)
        return take(made, inner, JoinLevel::aligned);
  }

  static void take(JoinedAllocation& made, std::int32_t traced, JoinLevel level) {
    made.traced = traced;
    made.level = level;
  }

  /// The next result of the graph that no one outside of the code gets, of the op of the line.
  std::int32_t innerResult(const TracedCode& code, const TracedCode::Line& line, const JoinedAllocation& made,
                           std::set<std::int32_t>& taken) const {
    const auto found = inner_.find({code.backward, line.op, made.what.requested});
    if (found != inner_.end())
      for (const auto number : found->second)
        if (taken.insert(number).second) return number;
    return TracedAllocation::none;
  }

  const MemoryPlaces& places_;
  MemoryJoin& join_;
  std::map<std::string, const TracedCode*, std::less<>> files_;
  std::set<std::int32_t> results_;  // allocations that the code returns
  std::map<std::tuple<bool, std::string, std::uint64_t>, std::vector<std::int32_t>> inner_;  // the others: op, bytes
  std::unordered_map<std::uint32_t, Place> codes_;
  std::map<std::pair<std::int32_t, const TracedCode*>, std::set<std::int32_t>> taken_;  // in one run of the code
};

}  // namespace

void joinByCode(const MemoryPlaces& places, MemoryJoin& join) { CodeJoiner(places, join).run(); }

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
