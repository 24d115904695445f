#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/id_vector.h"
#include "core/base/progress.h"
#include "core/layout/rungs.h"

namespace retrograd::layout {

/// A node of the tree that a trace's graph folds by.
struct TreeNode {
  enum class Kind : std::uint8_t {
    root,
    module,     ///< a call of a module: ops that are together under its path
    run,        ///< modules one behind the other that are equal: "h.0 ... 11, 12 times"
    operation,  ///< a computation op with its forward and backward ops: a rung of the ladder
    op
  };
  Kind kind = Kind::op;
  Lane lane = Lane::forward;  ///< of an op
  std::uint8_t depth = 0;
  std::int32_t parent = -1;
  std::int32_t end = 0;      ///< one past the last node below, in preorder
  std::int32_t ordinal = 0;  ///< place among its siblings
  std::int32_t childCount = 0;
  std::int32_t label = -1;        ///< of modules and runs, and of an operation that is all of its module
  BoundSymbolId op;               ///< op: itself; operation: the computation op, where there is one
  StringId module;                ///< path of its first op
  LaneArray<std::int32_t> ops{};  ///< ops below, by lane
  std::int64_t savedBytes = 0;    ///< that its forward ops keep for the backward (core/split/saved_values.h)
  std::int64_t acrossBytes = 0;   ///< of the memory that they keep for its own backward ops, each storage once
  LaneArray<float> width{};       ///< of its box while closed, by lane; 0: nothing is in that lane
  float height = 0;
  std::uint64_t structure = 0;  ///< equal for nodes whose insides are laid out alike
};

/// Ends of a flow that leaves its group: through the top, where what comes before is, or through the bottom.
inline constexpr std::int32_t topPort = -1;
inline constexpr std::int32_t bottomPort = 0x7fffffff;

/// What flows between two children of a group (by ordinal), or a child and the outside, merged. `from` is before
/// `to` in the forward. Counts are of distinct values: of the forward downwards, of gradients upwards, sums among them,
/// and of gradients that go downwards.
struct Flow {
  std::int32_t from = 0, to = 0;
  std::uint32_t data = 0, gradient = 0, accumulation = 0, downward = 0;
};

/// Values that a forward op below `from` keeps for a backward op below `to`; between children, or within an operation
/// of which `from` and `to` are ops.
struct SavedFlow {
  std::int32_t from = 0, to = 0;
  std::uint32_t count = 0;
  std::int64_t bytes = 0;
};

enum class EdgeKind : std::uint8_t { data, saved, gradient, accumulation, origin };
inline constexpr std::array edgeKinds{EdgeKind::data, EdgeKind::saved, EdgeKind::gradient, EdgeKind::accumulation,
                                      EdgeKind::origin};
inline constexpr std::size_t edgeKindCount = edgeKinds.size();
std::string_view name(EdgeKind);

/// A value that goes from the op that makes it to one that reads it.
struct OpEdge {
  std::int32_t from = 0, to = 0;  ///< tree nodes
  ValueId value;
  EdgeKind kind = EdgeKind::data;
};

/// A trace as a graph that folds: modules, operations, ops, and what flows between them, at every level.
/// Never changes once made. Positions are for GroupShape (shape.h).
class GraphTree {
 public:
  const Document& document() const { return *document_; }
  TraceKind kind() const { return kind_; }
  /// A joint has two lanes; other traces go down in one.
  bool ladder() const { return kind_ == TraceKind::joint; }

  std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
  const TreeNode& node(std::int32_t i) const { return nodes_[i]; }
  /// The next sibling of a child, or the end of its parent.
  std::int32_t next(std::int32_t child) const { return node(child).end; }
  /// Whether it has something to show when opened: an operation of one op a lane has not.
  bool canOpen(std::int32_t i) const;
  std::string_view label(std::int32_t i) const;
  /// The tree node of an op of the trace; -1 where it is not in it.
  std::int32_t nodeOf(BoundSymbolId op) const;
  /// The node of the op that makes a value in this trace; -1 where none does. (Value::producer may be the op of another
  /// trace.)
  std::int32_t makerOf(ValueId value) const { return value ? makers_[value] : -1; }
  /// The operation that an op's node belongs to.
  std::int32_t operationOf(std::int32_t node) const {
    return this->node(node).kind == TreeNode::Kind::op ? this->node(node).parent : node;
  }
  /// Whether `inner` is `outer` or below it.
  bool within(std::int32_t inner, std::int32_t outer) const { return inner >= outer && inner < node(outer).end; }

  /// Goes up from two nodes to the group in which each of them has a place, and returns these places, the first one's
  /// first. Calls `crosses(group, from, to)` for each group that the way leaves, with the ends of a flow there.
  template <class Crosses>
  std::pair<std::int32_t, std::int32_t> meeting(std::int32_t a, std::int32_t b, const Crosses& crosses) const {
    while (node(a).parent != node(b).parent) {
      const auto depthA = node(a).depth, depthB = node(b).depth;
      if (depthA >= depthB) {
        crosses(node(a).parent, node(a).ordinal, bottomPort);
        a = node(a).parent;
      }
      if (depthB >= depthA) {
        crosses(node(b).parent, topPort, node(b).ordinal);
        b = node(b).parent;
      }
    }
    return {a, b};
  }
  /// Calls `part(group, from, to)` for each part of the flow between two nodes: at every border it crosses, and where
  /// they meet.
  template <class Part>
  void forEachPart(std::int32_t first, std::int32_t second, const Part& part) const {
    const auto [a, b] = meeting(std::min(first, second), std::max(first, second), part);
    part(node(a).parent, node(a).ordinal, node(b).ordinal);
  }

  std::span<const Flow> flows(std::int32_t group) const { return slice(flows_, flowBegin_, group); }
  std::span<const SavedFlow> savedFlows(std::int32_t group) const { return slice(saved_, savedBegin_, group); }
  /// All that ops make for one another, ordered by the maker.
  const std::vector<OpEdge>& edges() const { return edges_; }
  std::span<const OpEdge> edgesFrom(std::int32_t op) const { return slice(edges_, edgeBegin_, op); }
  /// Indices into edges() of those that lead to an op.
  std::span<const std::int32_t> edgesTo(std::int32_t op) const { return slice(incoming_, incomingBegin_, op); }
  /// Name of a parameter, buffer or input: as the file calls it.
  std::string_view valueName(ValueId value) const;
  bool isResult(ValueId value) const { return value && results_[value]; }

  /// Allocated bytes.
  std::size_t bytes() const;

 private:
  friend class TreeBuilder;
  friend class EdgeLifting;
  friend void hashStructure(GraphTree&);
  friend void measureBoxes(GraphTree&);

  template <class T>
  static std::span<const T> slice(const std::vector<T>& all, const std::vector<std::uint32_t>& begin, std::int32_t i) {
    const std::size_t k = i;
    return {all.data() + begin[k], begin[k + 1] - begin[k]};
  }

  const Document* document_ = nullptr;
  TraceKind kind_ = TraceKind::joint;
  std::vector<TreeNode> nodes_;
  std::vector<std::string> labels_;
  IdVector<BoundSymbolId, std::int32_t> nodeOf_;
  IdVector<ValueId, std::int32_t> makers_;
  std::vector<Flow> flows_;
  std::vector<SavedFlow> saved_;
  std::vector<OpEdge> edges_;
  std::vector<std::int32_t> incoming_;
  std::vector<std::uint32_t> flowBegin_, savedBegin_, edgeBegin_, incomingBegin_;
  std::map<ValueId, std::string> names_;
  IdVector<ValueId, bool> results_;
};

/// Builds the tree of a trace; the document must outlive it. `computation` names parameters and inputs, where given.
/// Linear in ops, edges and depth. Throws Error(cancelled).
GraphTree buildTree(const Document& document, const Trace& trace, const Computation* computation = nullptr,
                    const Progress& progress = {});

}  // namespace retrograd::layout
