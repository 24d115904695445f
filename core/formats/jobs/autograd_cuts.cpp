#include "core/formats/jobs/autograd_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/formats/jobs/op_alignment.h"

namespace retrograd::jobs {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

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
    if (hasSigns()) aligned_ = alignNodes(graph_, forward_, cuts_.passing, ops_);
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
