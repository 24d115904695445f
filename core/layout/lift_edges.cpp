#include <algorithm>
#include <span>
#include <utility>

#include "core/layout/tree_passes.h"
#include "core/split/saved_values.h"

namespace retrograd::layout {
namespace {

enum class Part : std::uint8_t { data, gradient, accumulation, downward, saved };

/// One value between two places of a group; merged into flows afterwards.
struct Lifted {
  std::int32_t group;
  std::int32_t from, to;
  std::int32_t value;
  Part part;
};

/// Sorts by group, then within each, without comparing across groups.
void sortByGroup(std::vector<Lifted>& lifted, std::int32_t groups) {
  std::vector<std::uint32_t> begin(groups + 1, 0);
  for (const auto& l : lifted) ++begin[l.group + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<Lifted> sorted(lifted.size());
  auto at = begin;
  for (const auto& l : lifted) sorted[at[l.group]++] = l;
  for (std::size_t g = 0; g + 1 < begin.size(); ++g)
    std::sort(sorted.begin() + begin[g], sorted.begin() + begin[g + 1], [](const Lifted& a, const Lifted& b) {
      return std::tie(a.from, a.to, a.part, a.value) < std::tie(b.from, b.to, b.part, b.value);
    });
  lifted = std::move(sorted);
}

class Lifter {
 public:
  explicit Lifter(const GraphTree& tree) : tree_(tree) {}

  /// A flow: every border it crosses on the way to the lowest common ancestor gets its part of it.
  void flow(std::int32_t first, std::int32_t second, ValueId value, Part part) {
    tree_.forEachPart(first, second, [&](std::int32_t group, std::int32_t from, std::int32_t to) {
      lifted_.push_back({group, from, to, value.index, part});
    });
  }

  /// A saved value goes straight across from lane to lane: it shows where both ends first have different places, in
  /// the group that is returned.
  std::int32_t saved(std::int32_t first, std::int32_t second, ValueId value) {
    const auto [a, b] = tree_.meeting(first, second, [](auto...) {});
    const auto group = tree_.node(a).parent;
    lifted_.push_back({group, tree_.node(a).ordinal, tree_.node(b).ordinal, value.index, Part::saved});
    return group;
  }

  std::vector<Lifted> take() { return std::move(lifted_); }

 private:
  const GraphTree& tree_;
  std::vector<Lifted> lifted_;
};

std::uint32_t& countOf(Flow& flow, Part part) {
  switch (part) {
    case Part::gradient: return flow.gradient;
    case Part::accumulation: return flow.accumulation;
    case Part::downward: return flow.downward;
    default: return flow.data;
  }
}

/// Reads as one past the last entry of each group; turned into offsets.
void closeOffsets(std::vector<std::uint32_t>& begin) {
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] = std::max(begin[i], begin[i - 1]);
}

}  // namespace

/// liftEdges() in its three steps, over the tree's own tables.
class EdgeLifting {
 public:
  EdgeLifting(GraphTree& tree, const Progress& progress)
      : tree_(tree), document_(*tree.document_), progress_(progress), lifter_(tree) {}

  /// An edge for each value that one op makes and another reads, once for each pair.
  void findEdges() {
    for (std::int32_t to = 0; to < tree_.size(); ++to) {
      if ((to & 0xfff) == 0) progress_.check();
      const auto& reader = tree_.node(to);
      if (reader.kind != TreeNode::Kind::op) continue;
      const auto operands = document_.operands(reader.op);
      for (auto operand = operands.begin(); operand != operands.end(); ++operand) {
        const auto from = tree_.makerOf(*operand);
        if (from >= 0 && from != to && std::find(operands.begin(), operand, *operand) == operand)
          tree_.edges_.push_back({from, to, *operand, lift(from, to, *operand)});
      }
    }
  }

  /// Saved bytes of each node: what its own forward ops keep, and what stays between its own lanes.
  void countSaved() {
    std::vector<ValueId> values;
    std::vector<BoundSymbolId> ops;
    for (const auto& saved : saved_) values.push_back(saved.value);
    for (std::int32_t i = 0; i < tree_.size(); ++i)
      if (const auto& node = tree_.node(i); node.kind == TreeNode::Kind::op && node.lane == Lane::forward)
        ops.push_back(node.op);
    const auto costs = savedValues(document_, values, ops);
    IdVector<ValueId, char> counted(document_.valueCount(), 0);
    for (const auto& saved : saved_) {
      if (costs.costOf(saved.value) == 0 || std::exchange(counted[saved.value], 1)) continue;
      for (auto node = saved.maker; node >= 0; node = tree_.node(node).parent)
        tree_.nodes_[node].savedBytes += costs.costOf(saved.value);
    }
    const auto storageOf = [&](const Saved& saved) { return document_.value(saved.value).storage; };
    std::erase_if(saved_, [&](const Saved& saved) {
      const auto storage = storageOf(saved);
      return !storage || document_.storage(storage).external;
    });
    std::stable_sort(saved_.begin(), saved_.end(),
                     [&](const Saved& a, const Saved& b) { return storageOf(a).index < storageOf(b).index; });
    std::vector<StorageId> last(tree_.size());  // that was counted for each node
    for (const auto& saved : saved_)
      for (auto node = saved.group; node >= 0 && last[node] != storageOf(saved); node = tree_.node(node).parent) {
        last[node] = storageOf(saved);
        tree_.nodes_[node].acrossBytes += document_.storage(last[node]).bytes;
      }
    saved_ = {};
  }

  /// The same edges by their makers and by their readers.
  void indexEdges() {
    const std::size_t size = tree_.size();
    std::stable_sort(tree_.edges_.begin(), tree_.edges_.end(),
                     [](const OpEdge& a, const OpEdge& b) { return a.from < b.from; });
    tree_.edgeBegin_.assign(size + 1, 0);
    tree_.incomingBegin_.assign(size + 1, 0);
    for (const auto& edge : tree_.edges_) {
      ++tree_.edgeBegin_[edge.from + 1];
      ++tree_.incomingBegin_[edge.to + 1];
    }
    for (std::size_t i = 1; i <= size; ++i) {
      tree_.edgeBegin_[i] += tree_.edgeBegin_[i - 1];
      tree_.incomingBegin_[i] += tree_.incomingBegin_[i - 1];
    }
    tree_.incoming_.resize(tree_.edges_.size());
    auto at = tree_.incomingBegin_;
    for (std::size_t i = 0; i < tree_.edges_.size(); ++i)
      tree_.incoming_[at[tree_.edges_[i].to]++] = static_cast<std::int32_t>(i);
  }

  /// What was lifted to a group becomes one flow between each two of its places, and one of saved values.
  void mergeFlows() {
    auto lifted = lifter_.take();
    sortByGroup(lifted, tree_.size());
    progress_.check();
    tree_.flowBegin_.assign(tree_.size() + 1, 0);
    tree_.savedBegin_.assign(tree_.size() + 1, 0);
    const auto together = [](const Lifted& a, const Lifted& b) {
      return a.group == b.group && a.from == b.from && a.to == b.to;
    };
    for (std::size_t begin = 0, end = 0; begin < lifted.size(); begin = end) {
      while (end < lifted.size() && together(lifted[begin], lifted[end])) ++end;
      merge({lifted.begin() + begin, lifted.begin() + end});
    }
    closeOffsets(tree_.flowBegin_);
    closeOffsets(tree_.savedBegin_);
  }

 private:
  /// Takes a value up from its maker and its reader to where they meet.
  EdgeKind lift(std::int32_t from, std::int32_t to, ValueId value) {
    const auto &maker = tree_.node(from), &reader = tree_.node(to);
    if (maker.lane != reader.lane) {
      if (maker.lane == Lane::forward) {
        saved_.push_back({value, from, lifter_.saved(from, to, value)});
      }
      return EdgeKind::saved;
    }
    if (tree_.kind_ != TraceKind::backward && maker.lane != Lane::backward) {
      lifter_.flow(from, to, value, Part::data);
      return EdgeKind::data;
    }
    const auto kind = document_.boundSymbol(reader.op).origin.role == Role::accumulation ? EdgeKind::accumulation
                                                                                         : EdgeKind::gradient;
    const bool sameRung = maker.parent == reader.parent;
    const bool up = !tree_.ladder() || sameRung || from > to;
    lifter_.flow(from, to, value,
                 !up                              ? Part::downward
                 : kind == EdgeKind::accumulation ? Part::accumulation
                                                  : Part::gradient);
    return kind;
  }

  void merge(std::span<const Lifted> lifted) {
    const auto& first = lifted.front();
    Flow flow{first.from, first.to};
    SavedFlow saved{first.from, first.to};
    std::vector<StorageId> kept;  // sorted, since emptying a set costs as much as it ever held
    for (std::size_t i = 0; i < lifted.size(); ++i) {
      if (i > 0 && lifted[i].part == lifted[i - 1].part && lifted[i].value == lifted[i - 1].value) continue;
      if (lifted[i].part != Part::saved) {
        ++countOf(flow, lifted[i].part);
        continue;
      }
      ++saved.count;
      const auto storage = document_.value(ValueId(lifted[i].value)).storage;
      if (storage && !document_.storage(storage).external) kept.push_back(storage);
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (auto storage : kept) saved.bytes += document_.storage(storage).bytes;
    if (flow.data + flow.gradient + flow.accumulation + flow.downward > 0) {
      tree_.flows_.push_back(flow);
      tree_.flowBegin_[first.group + 1] = static_cast<std::uint32_t>(tree_.flows_.size());
    }
    if (saved.count > 0) {
      tree_.saved_.push_back(saved);
      tree_.savedBegin_[first.group + 1] = static_cast<std::uint32_t>(tree_.saved_.size());
    }
  }

  GraphTree& tree_;
  const Document& document_;
  const Progress& progress_;
  Lifter lifter_;
  struct Saved {
    ValueId value;
    std::int32_t maker = -1, group = -1;  ///< where the value is kept, and the lowest node with both ends below it
  };
  std::vector<Saved> saved_;
};

void liftEdges(GraphTree& tree, const Progress& progress) {
  EdgeLifting lifting(tree, progress);
  lifting.findEdges();
  lifting.countSaved();
  lifting.indexEdges();
  lifting.mergeFlows();
}

}  // namespace retrograd::layout
