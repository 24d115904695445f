#include "core/formats/jobs/op_alignment.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace retrograd::jobs {
namespace {

using Kind = fx::Expression::Kind;

/// "sum" of "torch.ops.aten.sum.dim_IntList".
std::string_view atenName(const fx::Node& node) {
  if (!node.call.is(Kind::call) || !node.call.items[0].is(Kind::path)) return {};
  std::string_view target = node.call.items[0].text;
  target = target.substr(0, target.rfind('.'));
  return target.substr(target.rfind('.') + 1);
}

/// Whether an ATen op may be the one that a torch function of this name calls.
bool relates(std::string_view function, std::string_view op) {
  static const std::multimap<std::string_view, std::string_view> others{{"matmul", "mm"},
                                                                        {"matmul", "bmm"},
                                                                        {"matmul", "mv"},
                                                                        {"matmul", "dot"},
                                                                        {"linear", "addmm"},
                                                                        {"linear", "mm"},
                                                                        {"truediv", "div"},
                                                                        {"square", "pow"},
                                                                        {"detach", "alias"},
                                                                        {"_get_data_attr", "detach"},
                                                                        {"_get_data_attr", "alias"},
                                                                        {"data", "detach"},
                                                                        {"data", "alias"},
                                                                        {"iadd", "add"},
                                                                        {"isub", "sub"},
                                                                        {"imul", "mul"},
                                                                        {"itruediv", "div"},
                                                                        {"getitem", "select"},
                                                                        {"getitem", "slice"},
                                                                        {"getitem", "index"},
                                                                        {"setitem", "select_scatter"},
                                                                        {"setitem", "slice_scatter"},
                                                                        {"setitem", "index_put"},
                                                                        {"setitem", "copy"},
                                                                        {"amax", "max"},
                                                                        {"std", "var"},
                                                                        {"floordiv", "div"},
                                                                        {"reshape", "view"},
                                                                        {"flatten", "view"}};
  while (function.starts_with('_') && function != "_get_data_attr") function.remove_prefix(1);
  if (function.ends_with('_')) function.remove_suffix(1);
  while (op.starts_with('_')) op.remove_prefix(1);
  if (function == op) return true;
  const auto [first, last] = others.equal_range(function);
  if (std::any_of(first, last, [&](const auto& entry) { return entry.second == op; })) return true;
  return function.size() > 3 && op.size() > 3 &&
         (op.find(function) != std::string_view::npos || function.find(op) != std::string_view::npos);
}

/// Lines that two graphs of one compile write alike.
using Line = std::tuple<std::string, int, std::string, bool>;
Line lineOf(const fx::Source& source) { return {source.file, source.line, source.function, source.backward}; }

class Aligner {
 public:
  Aligner(const fx::Graph& graph, std::size_t nodes, const std::vector<char>& skipped, const std::vector<DynamoOp>& ops)
      : graph_(graph), ops_(ops), aligned_(nodes) {
    for (const auto& op : ops_) opLines_.push_back(op.source == nullptr ? -1 : numberOf(lineOf(*op.source)));
    const std::set<int> known(opLines_.begin(), opLines_.end());
    for (std::size_t n = 0; n < nodes; ++n) {
      const auto& node = graph.nodes[n];
      if (skipped[n] || node.source == fx::noIndex || graph.sources[node.source].file.empty()) continue;
      const auto line = numberOf(lineOf(graph.sources[node.source]));
      if (!known.contains(line)) continue;
      nodes_.push_back(n);
      lines_.push_back(line);
    }
  }

  std::vector<Aligned> align() {
    if (nodes_.empty() || ops_.empty() || nodes_.size() > limit / ops_.size()) return std::move(aligned_);
    score();
    traceBack();
    findOthers();
    return std::move(aligned_);
  }

 private:
  static constexpr std::size_t limit = 40'000'000;  // pairs of a node and an op
  static constexpr int named = 4, otherLine = -50, leftOut = -1;

  int numberOf(const Line& line) { return numbers_.emplace(line, static_cast<int>(numbers_.size())).first->second; }

  int pairScore(std::size_t i, std::size_t d) const {
    if (lines_[i] != opLines_[d]) return otherLine;
    return relates(ops_[d].name, atenName(graph_.nodes[nodes_[i]])) ? named : 0;
  }

  /// Best score where node i comes from op d, for all i and d: from the op of the node before, or from a later one.
  /// What lies between was left out.
  void score() {
    const auto count = ops_.size();
    std::vector<int> before(count), now(count), left(count + 1, 0);
    for (std::size_t d = 0; d < count; ++d) left[d + 1] = left[d] + (ops_[d].makesTensor ? leftOut : 0);
    from_.assign(nodes_.size() * count, 0);
    for (std::size_t d = 0; d < count; ++d) before[d] = left[d] + pairScore(0, d);
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      int best = std::numeric_limits<int>::min() / 2;  // of an earlier op, without what is left out between
      std::size_t bestOp = 0;
      for (std::size_t d = 0; d < count; ++d) {
        const int again = before[d] + (lines_[i] == opLines_[d] ? 0 : otherLine);
        const int next = best + left[d] + pairScore(i, d);
        now[d] = std::max(again, next);
        from_[i * count + d] = static_cast<std::uint32_t>(next > again ? bestOp : d);
        if (before[d] - left[d + 1] > best) {
          best = before[d] - left[d + 1];
          bestOp = d;
        }
      }
      std::swap(before, now);
    }
    last_ = std::move(before);
    for (std::size_t d = 0; d < count; ++d) last_[d] += left[count] - left[d + 1];
  }

  void traceBack() {
    auto d = static_cast<std::size_t>(std::max_element(last_.begin(), last_.end()) - last_.begin());
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      if (lines_[i] == opLines_[d]) aligned_[nodes_[i]].op = d;
      d = from_[i * ops_.size() + d];
    }
  }

  /// Within the ops of a line, a node could come from any whose name fits as well, unless there is one for each node of
  /// its kind.
  void findOthers() {
    for (std::size_t i = 0; i < nodes_.size();) {
      auto end = i;  // nodes of one line in a row
      while (end < nodes_.size() && lines_[end] == lines_[i]) ++end;
      auto [first, last] = windowOf(i, end);
      for (auto k = i; k < end; ++k) findOthersOf(i, end, k, first, last);
      i = end;
    }
  }

  /// The ops between those of the neighbours of other lines.
  std::pair<std::size_t, std::size_t> windowOf(std::size_t begin, std::size_t end) const {
    std::size_t first = 0, last = ops_.size();
    for (auto i = begin; i-- > 0 && first == 0;)
      if (aligned_[nodes_[i]].op != noOp) first = aligned_[nodes_[i]].op + 1;
    for (auto i = end; i < nodes_.size() && last == ops_.size(); ++i)
      if (aligned_[nodes_[i]].op != noOp) last = aligned_[nodes_[i]].op;
    return {first, last};
  }

  void findOthersOf(std::size_t begin, std::size_t end, std::size_t k, std::size_t first, std::size_t last) {
    auto& aligned = aligned_[nodes_[k]];
    if (aligned.op == noOp) return;
    const auto name = atenName(graph_.nodes[nodes_[k]]);
    std::vector<std::size_t> same, sameName;
    for (auto d = first; d < last; ++d) {
      if (opLines_[d] != lines_[k]) continue;
      same.push_back(d);
      if (relates(ops_[d].name, name)) sameName.push_back(d);
    }
    const auto nodes =
        static_cast<std::size_t>(std::count_if(nodes_.begin() + begin, nodes_.begin() + end,
                                               [&](std::size_t n) { return atenName(graph_.nodes[n]) == name; }));
    if (!sameName.empty() && sameName.size() == nodes) return;
    aligned.others = sameName.empty() ? same : sameName;
    std::erase(aligned.others, aligned.op);
  }

  const fx::Graph& graph_;
  const std::vector<DynamoOp>& ops_;
  std::vector<Aligned> aligned_;
  std::map<Line, int> numbers_;
  std::vector<int> opLines_;
  std::vector<std::size_t> nodes_;
  std::vector<int> lines_;  ///< by position in nodes_
  std::vector<std::uint32_t> from_;
  std::vector<int> last_;
};

}  // namespace

std::vector<Aligned> alignNodes(const fx::Graph& graph, std::size_t nodes, const std::vector<char>& skipped,
                                const std::vector<DynamoOp>& ops) {
  return Aligner(graph, nodes, skipped, ops).align();
}

}  // namespace retrograd::jobs
