#include "core/split/min_cut.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/base/id_vector.h"
#include "core/split/flow.h"
#include "core/split/op_cost.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr std::int32_t source = 0, sink = 1;

/// A cut: what lies on the backward's side, and what it amounts to.
struct Cut {
  std::vector<char> inBackward;  // by node
  std::int64_t bytes = 0, cost = 0;
};

/// The forward as a flow network. An op is a node, a memory (a storage, or a value that has none) is two, with its
/// bytes between them. A node on the sink's side is recomputed; a memory whose two nodes lie apart is saved.
class CutGraph {
 public:
  CutGraph(const Document& document, const Trace& joint, const Dataflow& dataflow, const OpMarks& required)
      : document_(document),
        joint_(joint),
        dataflow_(dataflow),
        required_(required),
        network_(2),
        memoryOf_(document.storageCount() + document.valueCount(), -1) {
    opNode_.assign(joint.forwardCount, -1);
    findForced();
    for (std::size_t i = 0; i < joint.forwardCount; ++i)
      if (!dataflow.isView(static_cast<std::int32_t>(i))) addOp(static_cast<std::int32_t>(i));
    for (std::size_t i = joint.forwardCount; i < joint.ops.size(); ++i)
      for (auto operand : document.operands(joint.ops[i])) addRead(operand);
    for (std::size_t i = joint.resultCount; i < joint.outputs.size(); ++i) addRead(joint.outputs[i]);
  }

  /// The cut that minimises byteWeight * bytes + costWeight * cost; the one that recomputes least where several do.
  Cut solve(std::int64_t byteWeight, std::int64_t costWeight) {
    for (const auto& memory : memories_)
      network_.setCapacity(memory.edge,
                           memory.forced ? FlowNetwork::infinite : static_cast<Capacity>(byteWeight) * memory.bytes);
    for (const auto& op : ops_)
      network_.setCapacity(op.edge, op.forbidden ? FlowNetwork::infinite : static_cast<Capacity>(costWeight) * op.cost);
    return measured(network_.sinkSide(source, sink));
  }

  Cut measured(std::vector<char> inBackward) const {
    Cut cut{std::move(inBackward), 0, 0};
    for (const auto& memory : memories_)
      if (isSaved(memory, cut.inBackward)) cut.bytes += memory.bytes;
    for (const auto& op : ops_)
      if (cut.inBackward[op.node]) cut.cost += op.cost;
    return cut;
  }

  std::int64_t totalBytes() const {
    return std::accumulate(memories_.begin(), memories_.end(), std::int64_t{0},
                           [](auto sum, const Memory& m) { return sum + m.bytes; });
  }
  std::int64_t totalCost() const {
    return std::accumulate(ops_.begin(), ops_.end(), std::int64_t{0},
                           [](auto sum, const Op& op) { return sum + op.cost; });
  }

  /// From `less` (fewer bytes) to `more`: the parts of the difference that hang together, best trade first, taken over
  /// as long as they fit. The order does not depend on the budget, so choices stay nested.
  Cut refine(const Cut& less, const Cut& more, std::int64_t budget) const;

  /// Marks by bound symbol: recomputed ops, and views of what is recomputed or at hand, or of a base that is cheaper to
  /// save than they.
  OpMarks marks(const Cut& cut) const;

 private:
  struct Memory {
    std::int32_t in, out, edge;
    std::int64_t bytes;
    bool forced;    // all ops that make it must be recomputed
    ValueId value;  // some value in it
  };
  struct Op {
    std::int32_t node, edge, position;
    std::int64_t cost;
    bool forbidden;
  };

  static bool isSaved(const Memory& memory, const std::vector<char>& inBackward) {
    return !inBackward[memory.in] && inBackward[memory.out];
  }
  bool isRequired(std::int32_t position) const { return required_[joint_.ops[position]]; }

  std::size_t memoryKey(ValueId value) const {
    const auto storage = document_.value(value).storage;
    if (storage) return storage.index;
    return document_.storageCount() + value.index;
  }
  bool isFree(ValueId value) const {
    if (!value) return true;
    const auto storage = document_.value(value).storage;
    return (storage && document_.storage(storage).external) || dataflow_.producer(value) < 0;
  }

  /// Memories all of whose makers, views included, are required.
  void findForced() {
    forced_.assign(memoryOf_.size(), 0);
    std::vector<char> kept(memoryOf_.size(), 0);
    for (std::size_t i = 0; i < joint_.forwardCount; ++i)
      for (auto output : document_.outputs(joint_.ops[i]))
        if (output) (isRequired(static_cast<std::int32_t>(i)) ? forced_ : kept)[memoryKey(output)] = 1;
    for (std::size_t k = 0; k < kept.size(); ++k)
      if (kept[k]) forced_[k] = 0;
  }

  Memory& memoryFor(ValueId value) {
    const auto key = memoryKey(value);
    auto& index = memoryOf_[key];
    if (index < 0) {
      index = static_cast<std::int32_t>(memories_.size());
      const auto storage = document_.value(value).storage;
      const auto meta = document_.value(value).meta;
      const auto bytes = storage ? document_.storage(storage).bytes : meta ? document_.meta(meta).bytes() : 0;
      const auto in = network_.addNode(), out = network_.addNode();
      memories_.push_back({in, out, network_.addEdge(in, out, 0), bytes, forced_[key] != 0, value});
    }
    return memories_[index];
  }

  bool isForbidden(std::int32_t position) const {
    const auto op = joint_.ops[position];
    if (isRequired(position)) return false;
    constexpr auto never = effect::writes | effect::random | effect::opaque | effect::needsData;
    const auto& bound = document_.boundSymbol(op);
    for (auto output : document_.outputs(op))
      if (const auto* writes = output ? dataflow_.writes(document_.value(output).storage) : nullptr;
          writes && writes->writtenByBackward)
        return true;
    return (bound.effects & never) != 0 || !writtenOperands(document_, op).empty() ||
           isHeavy(familyOf(document_.symbol(bound.symbol).name));
  }

  void addOp(std::int32_t position) {
    const auto op = joint_.ops[position];
    const auto node = network_.addNode();
    opNode_[position] = node;
    bool forbidden = isForbidden(position);
    for (auto operand : document_.operands(op)) {
      if (!operand) continue;
      const auto* writes = dataflow_.writes(document_.value(operand).storage);
      const bool changesLater =
          writes && (writes->writtenByBackward || (!writes->writers.empty() && position <= writes->writers.back()));
      if (isFree(operand)) {
        forbidden |= changesLater && !isRequired(position);
        continue;
      }
      // Who reads or writes a storage before its last write can only do so again in a storage that is made again.
      const auto& memory = memoryFor(operand);
      network_.addEdge(changesLater ? memory.in : memory.out, node, FlowNetwork::infinite);
    }
    for (auto output : document_.outputs(op))
      if (output && !isFree(output)) network_.addEdge(node, memoryFor(output).in, FlowNetwork::infinite);
    for (auto written : writtenOperands(document_, op))
      if (!isFree(written)) network_.addEdge(node, memoryFor(written).in, FlowNetwork::infinite);
    const auto cost = isRequired(position) ? 0 : opCost(document_, op);
    ops_.push_back({node, network_.addEdge(source, node, 0), position, cost, forbidden});
  }

  void addRead(ValueId value) {
    if (!isFree(value)) network_.addEdge(memoryFor(value).out, sink, FlowNetwork::infinite);
  }

  /// The value whose memory `value` is a view of: the output of the op that is not a view.
  ValueId rootOf(ValueId value) const {
    for (;;) {
      const auto producer = dataflow_.producer(value);
      if (producer < 0 || !dataflow_.isView(producer)) return value;
      const auto storage = document_.value(value).storage;
      ValueId base;
      for (auto operand : document_.operands(joint_.ops[producer]))
        if (operand && document_.value(operand).storage == storage && !base) base = operand;
      if (!base || base == value) return value;
      value = base;
    }
  }

  /// By memory: whether its views are to be made again from the saved base, because together they hold more bytes than
  /// it does.
  std::vector<char> findViewsToRemake(const Cut& cut, const OpMarks& marks) const;

  const Document& document_;
  const Trace& joint_;
  const Dataflow& dataflow_;
  const OpMarks& required_;
  FlowNetwork network_;
  std::vector<std::int32_t> memoryOf_;  // by storage, then by value: into memories_
  std::vector<char> forced_;            // likewise
  std::vector<Memory> memories_;
  std::vector<Op> ops_;
  std::vector<std::int32_t> opNode_;  // by position
};

std::vector<char> CutGraph::findViewsToRemake(const Cut& cut, const OpMarks& marks) const {
  struct Sums {
    std::int64_t values = 0, roots = 0;
  };
  std::vector<Sums> sums(memories_.size());
  IdVector<ValueId, char> counted(document_.valueCount(), 0), countedRoot(document_.valueCount(), 0);
  const auto bytesOf = [&](ValueId value) { return document_.isTensor(value) ? document_.meta(value).bytes() : 0; };
  const auto read = [&](ValueId value) {
    if (isFree(value) || std::exchange(counted[value], 1)) return;
    const auto memory = memoryOf_[memoryKey(value)];
    if (memory < 0 || !isSaved(memories_[memory], cut.inBackward)) return;
    auto& sum = sums[memory];
    sum.values += bytesOf(value);
    const auto root = rootOf(value);
    if (!std::exchange(countedRoot[root], 1)) sum.roots += bytesOf(root);
  };
  for (std::size_t i = 0; i < joint_.ops.size(); ++i)
    if (i >= joint_.forwardCount || marks[joint_.ops[i]])
      for (auto operand : document_.operands(joint_.ops[i])) read(operand);
  for (std::size_t i = joint_.resultCount; i < joint_.outputs.size(); ++i) read(joint_.outputs[i]);
  std::vector<char> remake(memories_.size(), 0);
  for (std::size_t m = 0; m < memories_.size(); ++m) remake[m] = sums[m].values > sums[m].roots;
  return remake;
}

OpMarks CutGraph::marks(const Cut& cut) const {
  OpMarks marks(document_.boundSymbolCount(), 0);
  const auto markOf = [&](std::int32_t position) -> char& { return marks[joint_.ops[position]]; };
  for (const auto& op : ops_) markOf(op.position) = cut.inBackward[op.node];
  const auto remake = findViewsToRemake(cut, marks);
  for (std::size_t i = 0; i < joint_.forwardCount; ++i) {
    const auto position = static_cast<std::int32_t>(i);
    if (!dataflow_.isView(position)) continue;
    bool all = true;
    for (auto output : document_.outputs(joint_.ops[i])) {
      if (!output) continue;
      const auto storage = document_.value(output).storage;
      if (storage && document_.storage(storage).external) continue;  // a view of an input costs nothing
      const auto memory = memoryOf_[memoryKey(output)];
      if (memory < 0) continue;
      all &= cut.inBackward[memories_[memory].in] || remake[memory];
    }
    markOf(position) = all;
  }
  return marks;
}

Cut CutGraph::refine(const Cut& less, const Cut& more, std::int64_t budget) const {
  const auto nodes = less.inBackward.size();
  std::vector<char> differs(nodes, 0);
  for (std::size_t n = 2; n < nodes; ++n) differs[n] = less.inBackward[n] && !more.inBackward[n];
  std::vector<std::int32_t> part(nodes);
  std::iota(part.begin(), part.end(), 0);
  const auto find = [&](std::int32_t n) {
    while (part[n] != n) n = part[n] = part[part[n]];
    return n;
  };
  for (std::int32_t e = 0; e < 2 * network_.edgeCount(); e += 2) {
    const auto a = network_.from(e), b = network_.to(e);
    if (differs[a] && differs[b]) part[std::max(find(a), find(b))] = std::min(find(a), find(b));
  }
  struct Part {
    std::int32_t root;
    std::int64_t bytes = 0, cost = 0;  // what saving it adds and spares
    std::vector<std::int32_t> nodes;
  };
  std::vector<Part> parts;
  std::unordered_map<std::int32_t, std::size_t> index;
  const auto partOf = [&](std::int32_t node) -> Part& {
    const auto [it, isNew] = index.try_emplace(find(node), parts.size());
    if (isNew) parts.push_back({it->first, 0, 0, {}});
    return parts[it->second];
  };
  for (std::size_t n = 2; n < nodes; ++n)
    if (differs[n]) partOf(static_cast<std::int32_t>(n)).nodes.push_back(static_cast<std::int32_t>(n));
  for (const auto& memory : memories_) {
    const bool before = isSaved(memory, less.inBackward), after = isSaved(memory, more.inBackward);
    if (before == after) continue;
    partOf(differs[memory.in] ? memory.in : memory.out).bytes += after ? memory.bytes : -memory.bytes;
  }
  for (const auto& op : ops_)
    if (differs[op.node]) partOf(op.node).cost += op.cost;
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    if ((a.bytes <= 0) != (b.bytes <= 0)) return a.bytes <= 0;
    if (a.bytes <= 0) return a.root < b.root;
    const auto left = static_cast<Capacity>(a.cost) * b.bytes, right = static_cast<Capacity>(b.cost) * a.bytes;
    return left != right ? left > right : a.root < b.root;
  });
  auto side = less.inBackward;
  auto bytes = less.bytes;
  std::size_t fitting = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    bytes += parts[k].bytes;
    if (bytes <= budget) fitting = k + 1;
  }
  for (std::size_t k = 0; k < fitting; ++k)
    for (auto node : parts[k].nodes) side[node] = 0;
  return measured(std::move(side));
}

/// Narrows the lower hull of bytes against cost down to the edge that the budget lies on.
Cut cheapestWithin(CutGraph& graph, Cut least, std::int64_t budget) {
  if (budget < least.bytes)
    throw Error(
        ErrorCode::badUse,
        "no partition saves as little: the smallest possible budget is " + std::to_string(least.bytes) + " bytes",
        "budget " + std::to_string(budget));
  auto most = graph.solve(1, graph.totalBytes() + 1);
  if (most.bytes <= budget) return most;
  while (least.cost > most.cost) {
    const auto byteWeight = least.cost - most.cost, costWeight = most.bytes - least.bytes;
    auto middle = graph.solve(byteWeight, costWeight);
    const auto weigh = [&](const Cut& cut) {
      return static_cast<Capacity>(byteWeight) * cut.bytes + static_cast<Capacity>(costWeight) * cut.cost;
    };
    if (weigh(middle) == weigh(least)) break;
    (middle.bytes <= budget ? least : most) = std::move(middle);
  }
  return graph.refine(least, most, budget);
}

}  // namespace

SavingChoice chooseSaved(const Document& document, const Trace& joint, const Dataflow& dataflow,
                         const OpMarks& required, std::optional<std::int64_t> budget) {
  CutGraph graph(document, joint, dataflow, required);
  auto cut = graph.solve(graph.totalCost() + 1, 1);
  if (budget) cut = cheapestWithin(graph, std::move(cut), *budget);
  return {graph.marks(cut), cut.bytes, cut.cost};
}

SavedBytes savedBytes(const Document& document, const Trace& joint) {
  IdVector<ValueId, char> made(document.valueCount(), 0);
  IdVector<StorageId, char> counted(document.storageCount(), 0);
  for (std::size_t i = 0; i < joint.forwardCount; ++i)
    for (auto output : document.outputs(joint.ops[i]))
      if (output) made[output] = 1;
  SavedBytes saved;
  const auto read = [&](ValueId value) {
    if (!value || !document.isTensor(value) || !std::exchange(made[value], 0)) return;
    saved.values += document.meta(value).bytes();
    const auto storage = document.value(value).storage;
    if (storage && !document.storage(storage).external && !std::exchange(counted[storage], 1))
      saved.storages += document.storage(storage).bytes;
  };
  for (std::size_t i = joint.forwardCount; i < joint.ops.size(); ++i)
    for (auto operand : document.operands(joint.ops[i])) read(operand);
  for (std::size_t i = joint.resultCount; i < joint.outputs.size(); ++i) read(joint.outputs[i]);
  return saved;
}

}  // namespace retrograd
