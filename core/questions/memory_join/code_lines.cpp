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

}  // namespace retrograd
