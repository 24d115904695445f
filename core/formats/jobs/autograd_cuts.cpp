#include "core/formats/jobs/autograd_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "core/formats/jobs/dynamo_ops.h"

namespace retrograd::jobs {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

constexpr std::size_t noOp = static_cast<std::size_t>(-1);

/// Which op of Dynamo's graph a node of an ATen graph comes from.
struct Aligned {
  std::size_t op = noOp;            ///< into the Dynamo ops; none where no op has the node's line
  std::vector<std::size_t> others;  ///< ops that it could come from as well: as to order, line and name nothing decides
};

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

/// Aligns nodes of an ATen graph with the ops of Dynamo's graph: both ran in one order, an op gives nodes with its line
/// of Python, and most give one of their own name. The alignment that pairs most names wins. Of nodes without a line,
/// and where `skipped` says so, none is found.
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

std::string placeOf(const fx::Source* source) {
  if (source == nullptr || source->file.empty()) return "a line that the graph does not name";
  return fmt::format("{}:{}: {}", source->file, source->line, source->code);
}

bool isDetach(const fx::Node& node) {
  return node.call.isCallOf("torch.ops.aten.detach.default") || node.call.isCallOf("torch.ops.aten.alias.default");
}

class Finder {
 public:
  Finder(const fx::Graph& graph, std::size_t forwardNodes, const std::vector<char>& differentiated,
         const fx::Graph& dynamo)
      : graph_(graph), forward_(std::min(forwardNodes, graph.nodes.size())), ops_(dynamoOps(dynamo)) {
    requiresGrad_.assign(graph.valueCount(), 0);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
      requiresGrad_[i] = i < differentiated.size() && differentiated[i];
    cuts_.unrecorded.assign(graph.nodes.size(), 0);
    cuts_.passing.assign(graph.nodes.size(), 0);
  }

  AutogradCuts find() {
    for (const auto& op : ops_) {
      if (op.name == "autograd_function_apply" || op.name == "register_hook")
        cuts_.ownBackwards.push_back(placeOf(op.source));
      if (op.isInner) cuts_.innerBackwards.push_back(placeOf(op.source));
    }
    findSaved();
    if (hasSigns()) aligned_ = Aligner(graph_, forward_, cuts_.passing, ops_).align();
    else aligned_.resize(forward_);
    findLast();
    for (std::size_t n = 0; n < forward_; ++n) visit(n);
    return std::move(cuts_);
  }

 private:
  /// Whether Dynamo's graph has anything that keeps a gradient from an op.
  bool hasSigns() const {
    return std::any_of(ops_.begin(), ops_.end(), [](const auto& op) {
      return !op.recorded || op.detaches || op.hasOwnBackward || op.detachedLater;
    });
  }

  const fx::Source* sourceOf(std::size_t n) const {
    const auto source = graph_.nodes[n].source;
    return source == fx::noIndex ? nullptr : &graph_.sources[source];
  }

  bool isOfBackward(std::size_t n) const { return n >= forward_ || (sourceOf(n) != nullptr && sourceOf(n)->backward); }

  /// Autograd saves the result of an op detached, and takes it out of its store detached once more: both are followed
  /// by the gradient all the same. A second derivative shows them.
  void findSaved() {
    const auto first = graph_.inputs.size();
    std::vector<std::vector<std::size_t>> users(graph_.valueCount());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      fx::forEachValue(graph_.nodes[n].call, [&](std::size_t value) { users[value].push_back(n); });
    for (std::size_t n = 0; n < forward_; ++n) {
      if (!isDetach(graph_.nodes[n])) continue;
      const auto& readers = users[first + n];
      const bool isSaved = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](std::size_t user) {
        return user >= forward_ || (isDetach(graph_.nodes[user]) && isOfBackward(user));
      });
      const auto base = operandOf(n);
      const bool isTakenOut = isOfBackward(n) && base && *base >= first && cuts_.passing[*base - first];
      cuts_.passing[n] = isSaved || isTakenOut;
    }
  }

  std::optional<std::size_t> operandOf(std::size_t n) const {
    const auto& call = graph_.nodes[n].call;
    return call.items.size() > 1 && call.items[1].is(Kind::value) ? std::optional(call.items[1].valueIndex())
                                                                  : std::nullopt;
  }

  /// The last node of each op: of a write it is the one that has what was written.
  void findLast() {
    last_.assign(ops_.size(), noOp);
    for (std::size_t n = 0; n < forward_; ++n)
      if (aligned_[n].op != noOp) last_[aligned_[n].op] = n;
  }

  const DynamoOp* opOf(std::size_t n) const { return aligned_[n].op == noOp ? nullptr : &ops_[aligned_[n].op]; }

  /// Whether autograd recorded what an op of Dynamo's graph did. Ops of an autograd.Function count as if it had: their
  /// gradient is compared with the author's own.
  static bool isRecorded(const DynamoOp& op) { return op.recorded || op.hasOwnBackward; }

  bool canRequireGrad(std::size_t n) const {
    const auto type = graph_.nodes[n].type;
    if (type == fx::noIndex || graph_.types[type].kind != fx::Type::Kind::tensor) return true;  // a tuple
    return isDifferentiable(graph_.types[type].dtype);
  }

  void visit(std::size_t n) {
    const auto value = graph_.inputs.size() + n;
    bool isReached = false;
    fx::forEachValue(graph_.nodes[n].call, [&](std::size_t operand) { isReached |= requiresGrad_[operand] != 0; });
    if (const auto base = overwritten(n)) {
      cuts_.writes.emplace(n, *base);
      cuts_.differ = true;
      requiresGrad_[value] = 1;
      return;
    }
    if (!isReached) return;
    requiresGrad_[value] = isDetach(graph_.nodes[n]) ? visitDetach(n) : visitOp(n);
  }

  /// Returns whether gradients pass.
  bool visitDetach(std::size_t n) {
    const bool isAlias = graph_.nodes[n].call.isCallOf("torch.ops.aten.alias.default");
    if (cuts_.passing[n]) {
      cuts_.differ |= isOfBackward(n);  // taken out of the store within the forward
      return true;
    }
    const auto* op = opOf(n);
    if (op != nullptr && !isRecorded(*op)) return visitOp(n);
    if (op != nullptr && op->detaches) {
      cuts_.unrecorded[n] = 1;
      cuts_.differ |= isAlias;
      return false;
    }
    // The graph has no detach() there. A torch function may call one within, and other ops decompose to an alias.
    cuts_.differ = true;
    cuts_.perhaps.push_back(n);
    cuts_.unrecorded[n] = !isAlias;
    return isAlias;
  }

  bool visitOp(std::size_t n) {
    const auto* op = opOf(n);
    const bool recorded = op == nullptr || isRecorded(*op);
    const auto& others = aligned_[n].others;
    const bool isUnclear = (op != nullptr && op->detachedLater) ||
                           std::any_of(others.begin(), others.end(),
                                       [&](std::size_t other) { return isRecorded(ops_[other]) != recorded; });
    if (canRequireGrad(n) && isUnclear)
      cuts_.doubts.push_back({n, fmt::format("{} ({})", graph_.nodes[n].name, placeOf(sourceOf(n)))});
    if (recorded) return canRequireGrad(n);
    cuts_.unrecorded[n] = 1;
    cuts_.differ |= canRequireGrad(n);
    return false;
  }

  /// The value that requires a gradient and that this node overwrites, by a write that autograd does not record: under
  /// no_grad, or into `.data`.
  std::optional<std::size_t> overwritten(std::size_t n) const {
    const auto* op = opOf(n);
    if (op == nullptr || !op->writes || op->hasOwnBackward || last_[aligned_[n].op] != n) return std::nullopt;
    auto base = operandOf(n);
    bool isHidden = !op->recorded;
    const auto first = graph_.inputs.size();
    while (base && *base >= first) {
      const auto maker = *base - first;
      const bool isDetached = isDetach(graph_.nodes[maker]) && cuts_.unrecorded[maker];
      if (!isDetached && (maker >= forward_ || aligned_[maker].op != aligned_[n].op)) break;  // not of the same write
      isHidden |= isDetached;
      base = operandOf(maker);
    }
    if (!base || !isHidden || !requiresGrad_[*base] || !isSameType(*base, first + n)) return std::nullopt;
    return base;
  }

  bool isSameType(std::size_t a, std::size_t b) const {
    const auto left = graph_.valueType(a), right = graph_.valueType(b);
    if (left == fx::noIndex || right == fx::noIndex) return false;
    return graph_.types[left].dtype == graph_.types[right].dtype &&
           graph_.types[left].sizes == graph_.types[right].sizes;
  }

  const fx::Graph& graph_;
  std::size_t forward_;
  std::vector<DynamoOp> ops_;
  std::vector<Aligned> aligned_;
  std::vector<std::size_t> last_;  ///< by op: its last node
  std::vector<char> requiresGrad_;
  AutogradCuts cuts_;
};

}  // namespace

AutogradCuts autogradCuts(const fx::Graph& graph, std::size_t forwardNodes, const std::vector<char>& differentiated,
                          const fx::Graph& dynamo) {
  return Finder(graph, forwardNodes, differentiated, dynamo).find();
}

void letPass(fx::Graph& graph, const AutogradCuts& cuts) {
  const auto letThrough = [&](std::size_t n) {
    if (graph.nodes[n].call.isCallOf("torch.ops.aten.detach.default"))
      graph.nodes[n].call.items[0].text = "torch.ops.aten.alias.default";
  };
  for (std::size_t n = 0; n < graph.nodes.size() && n < cuts.passing.size(); ++n)
    if (cuts.passing[n]) letThrough(n);
  for (const auto n : cuts.perhaps) letThrough(n);  // whether it cuts, `unrecorded` says
}

}  // namespace retrograd::jobs
