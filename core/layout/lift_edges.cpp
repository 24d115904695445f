#include <algorithm>
#include <unordered_set>

#include "core/layout/tree_passes.h"

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
    std::sort(sorted.begin() + begin[g], sorted.begin() + begin[g + 1],
              [](const Lifted& a, const Lifted& b) { return std::tie(a.from, a.to, a.part, a.value) < std::tie(b.from, b.to, b.part, b.value); });
  lifted = std::move(sorted);
}

class Lifter {
 public:
  explicit Lifter(const GraphTree& tree) : tree_(tree) {}

  /// A flow: every border it crosses on the way to the lowest common ancestor gets its part of it.
  void flow(std::int32_t first, std::int32_t second, ValueId value, Part part) {
    auto a = std::min(first, second), b = std::max(first, second);
    while (tree_.node(a).parent != tree_.node(b).parent) {
      const auto depthA = tree_.node(a).depth, depthB = tree_.node(b).depth;
      if (depthA >= depthB) {
        add(tree_.node(a).parent, tree_.node(a).ordinal, bottomPort, value, part);
        a = tree_.node(a).parent;
      }
      if (depthB >= depthA) {
        add(tree_.node(b).parent, topPort, tree_.node(b).ordinal, value, part);
        b = tree_.node(b).parent;
      }
    }
    add(tree_.node(a).parent, tree_.node(a).ordinal, tree_.node(b).ordinal, value, part);
  }

  /// A saved value goes straight across from lane to lane: it shows where both ends first have different places.
  void saved(std::int32_t first, std::int32_t second, ValueId value) {
    auto a = first, b = second;
    while (tree_.node(a).parent != tree_.node(b).parent) {
      const auto depthA = tree_.node(a).depth, depthB = tree_.node(b).depth;
      if (depthA >= depthB) a = tree_.node(a).parent;
      if (depthB >= depthA) b = tree_.node(b).parent;
    }
    add(tree_.node(a).parent, tree_.node(a).ordinal, tree_.node(b).ordinal, value, Part::saved);
  }

  std::vector<Lifted> take() { return std::move(lifted_); }

 private:
  void add(std::int32_t group, std::int32_t from, std::int32_t to, ValueId value, Part part) { lifted_.push_back({group, from, to, value.index, part}); }

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

void liftEdges(GraphTree& tree, const Progress& progress) {
  const auto& document = *tree.document_;
  const std::size_t size = tree.size();
  Lifter lifter(tree);
  std::unordered_set<std::int32_t> storages;
  tree.edgeBegin_.assign(size + 1, 0);
  for (std::int32_t to = 0; to < tree.size(); ++to) {
    if ((to & 0xfff) == 0) progress.check();
    const auto& reader = tree.node(to);
    if (reader.kind != TreeNode::Kind::op) continue;
    const auto operands = document.operands(reader.op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto value = operands[i];
      const auto from = tree.makerOf(value);
      if (from < 0 || from == to) continue;
      if (std::find(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(i), value) != operands.begin() + static_cast<std::ptrdiff_t>(i)) continue;
      const auto& maker = tree.node(from);
      auto kind = EdgeKind::data;
      const bool gradients = tree.kind_ == TraceKind::backward || (maker.lane == Lane::backward && reader.lane == Lane::backward);
      if (maker.lane != reader.lane) {
        kind = EdgeKind::saved;
        if (maker.lane == Lane::forward) lifter.saved(from, to, value);
        const auto storage = document.value(value).storage;
        if (maker.lane == Lane::forward && storage && !document.storage(storage).external && storages.insert(storage.index).second)
          for (auto node = from; node >= 0; node = tree.node(node).parent) tree.nodes_[node].savedBytes += document.storage(storage).bytes;
      } else if (gradients) {
        kind = document.boundSymbol(reader.op).origin.role == Role::accumulation ? EdgeKind::accumulation : EdgeKind::gradient;
        const bool sameRung = maker.parent == reader.parent;
        const bool up = !tree.ladder() || sameRung || from > to;
        lifter.flow(from, to, value, !up ? Part::downward : kind == EdgeKind::accumulation ? Part::accumulation : Part::gradient);
      } else {
        lifter.flow(from, to, value, Part::data);
      }
      tree.edges_.push_back({from, to, value, kind});
    }
  }

  std::stable_sort(tree.edges_.begin(), tree.edges_.end(), [](const OpEdge& a, const OpEdge& b) { return a.from < b.from; });
  tree.incomingBegin_.assign(size + 1, 0);
  for (const auto& edge : tree.edges_) {
    ++tree.edgeBegin_[edge.from + 1];
    ++tree.incomingBegin_[edge.to + 1];
  }
  for (std::size_t i = 1; i <= size; ++i) {
    tree.edgeBegin_[i] += tree.edgeBegin_[i - 1];
    tree.incomingBegin_[i] += tree.incomingBegin_[i - 1];
  }
  tree.incoming_.resize(tree.edges_.size());
  auto at = tree.incomingBegin_;
  for (std::size_t i = 0; i < tree.edges_.size(); ++i) tree.incoming_[at[tree.edges_[i].to]++] = static_cast<std::int32_t>(i);

  auto lifted = lifter.take();
  sortByGroup(lifted, tree.size());
  progress.check();
  tree.flowBegin_.assign(size + 1, 0);
  tree.savedBegin_.assign(size + 1, 0);
  std::vector<StorageId> kept;  // of one flow; sorted, since emptying a set costs as much as it ever held
  for (std::size_t i = 0; i < lifted.size();) {
    const auto& first = lifted[i];
    Flow flow{first.from, first.to};
    SavedFlow saved{first.from, first.to};
    kept.clear();
    for (; i < lifted.size() && lifted[i].group == first.group && lifted[i].from == first.from && lifted[i].to == first.to; ++i) {
      if (&lifted[i] != &first && lifted[i].part == lifted[i - 1].part && lifted[i].value == lifted[i - 1].value) continue;
      if (lifted[i].part != Part::saved) {
        ++countOf(flow, lifted[i].part);
        continue;
      }
      ++saved.count;
      const auto storage = document.value(ValueId(lifted[i].value)).storage;
      if (storage && !document.storage(storage).external) kept.push_back(storage);
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (auto storage : kept) saved.bytes += document.storage(storage).bytes;
    const std::size_t group = first.group;
    if (flow.data + flow.gradient + flow.accumulation + flow.downward > 0) {
      tree.flows_.push_back(flow);
      tree.flowBegin_[group + 1] = static_cast<std::uint32_t>(tree.flows_.size());
    }
    if (saved.count > 0) {
      tree.saved_.push_back(saved);
      tree.savedBegin_[group + 1] = static_cast<std::uint32_t>(tree.saved_.size());
    }
  }
  closeOffsets(tree.flowBegin_);
  closeOffsets(tree.savedBegin_);
}

}  // namespace retrograd::layout
