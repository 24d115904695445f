#include "core/layout/graph_tree.h"

#include <unordered_map>

#include "core/base/enum_array.h"
#include "core/base/module_path.h"
#include "core/layout/tree_passes.h"

namespace retrograd::layout {
namespace {

constexpr std::size_t mostParts = 48;   ///< of a path; what is deeper is in the last part
constexpr std::size_t shortestRun = 3;  ///< equal layers that fold into one

struct Draft {
  TreeNode::Kind kind = TreeNode::Kind::module;
  std::string label;
  StringId module;
  std::size_t rung = 0;            ///< of an operation
  std::size_t begin = 0, end = 0;  ///< ops below, by position
  std::vector<Draft> children;
};

}  // namespace

class TreeBuilder {
 public:
  TreeBuilder(const Document& document, const Trace& trace, const Progress& progress)
      : document_(document), progress_(progress) {
    tree_.document_ = &document;
    tree_.kind_ = trace.kind;
    rungs_ = rungsOf(document, trace);
    madeAt_.assign(document.valueCount(), -1);
  }

  GraphTree run(const Trace& trace, const Computation* computation) {
    auto root = draft();
    progress_.check();
    number(root);
    foldRuns(root);
    simplify(root);
    tree_.nodeOf_.assign(document_.boundSymbolCount(), -1);
    tree_.makers_.assign(document_.valueCount(), -1);
    append(root, -1, 0, 0);
    if (computation)
      for (const auto& input : computation->inputs)
        if (input.value) tree_.names_[input.value] = input.target.empty() ? input.name : input.target;
    tree_.results_.assign(document_.valueCount(), false);
    for (auto value : trace.outputs)
      if (value) tree_.results_[value] = true;
    return std::move(tree_);
  }

 private:
  /// Modules nest by path as long as ops that follow one another share it.
  Draft draft() {
    Draft root;
    root.kind = TreeNode::Kind::root;
    std::vector<Draft*> open{&root};
    std::vector<std::unordered_map<std::string, int>> calls(1);  // of each module by name, along the open path
    std::vector<std::string_view> path;
    StringId module;
    for (std::size_t i = 0; i < rungs_.size(); ++i) {
      if (i == 0 || rungs_[i].module != module) {
        module = rungs_[i].module;
        auto parts = module ? partsOf(document_.text(module), mostParts) : std::vector<std::string_view>();
        std::size_t common = 0;
        while (common < path.size() && common < parts.size() && path[common] == parts[common]) ++common;
        open.resize(common + 1);
        calls.resize(common + 1);
        for (auto k = common; k < parts.size(); ++k) {
          const auto call = ++calls.back()[std::string(parts[k])];
          auto& child = open.back()->children.emplace_back();
          child.label = parts[k];
          if (call > 1) child.label += " (" + std::to_string(call) + ")";
          child.module = module;
          open.push_back(&child);
          calls.emplace_back();
        }
        path = std::move(parts);
      }
      auto& operation = open.back()->children.emplace_back();
      operation.kind = TreeNode::Kind::operation;
      operation.module = module;
      operation.rung = i;
    }
    return root;
  }

  /// Gives each op its position and each draft its range.
  void number(Draft& draft) {
    draft.begin = order_.size();
    if (draft.kind == TreeNode::Kind::operation) {
      for (const auto& lane : rungs_[draft.rung].ops)
        for (auto op : lane) {
          for (auto output : document_.outputs(op))  // an output that is not made is not a value
            if (output) madeAt_[output] = std::ssize(order_);
          order_.push_back(op);
        }
    }
    for (auto& child : draft.children) number(child);
    draft.end = order_.size();
  }

  /// What two equal layers have in common: ops, shapes, inner names, and where each operand comes from as seen from
  /// within.
  std::uint64_t likeness(const Draft& draft) const {
    std::uint64_t hash = draft.end - draft.begin;
    for (auto i = draft.begin; i < draft.end; ++i) {
      const auto op = order_[i];
      hash = mix(hash, static_cast<std::uint64_t>(document_.boundSymbol(op).symbol.index));
      for (auto operand : document_.operands(op)) {
        if (!operand) continue;
        const auto& value = document_.value(operand);
        const auto at = madeAt_[operand];
        const bool inside = at >= static_cast<std::int64_t>(draft.begin) && at < static_cast<std::int64_t>(draft.end);
        // From outside: that it is a weight counts, not whether it is the model's input or another layer's output.
        const bool flows = at >= 0 || value.kind == ValueKind::input || value.kind == ValueKind::cotangent;
        hash = mix(hash, inside  ? static_cast<std::uint64_t>(static_cast<std::int64_t>(i) - at)
                         : flows ? ~0ull
                                 : ~1ull - static_cast<std::uint64_t>(value.kind));
      }
      for (auto output : document_.outputs(op))
        hash = mix(hash, output ? static_cast<std::uint64_t>(document_.value(output).meta.index) : 1);
    }
    return names(draft, hash);
  }
  static std::uint64_t names(const Draft& draft, std::uint64_t hash) {
    for (const auto& child : draft.children) {
      hash = mix(hash, child.kind == TreeNode::Kind::operation ? 0 : std::hash<std::string>()(child.label));
      hash = names(child, mix(hash, child.end - child.begin));
    }
    return hash;
  }

  /// Layers come one behind the other; projections side by side are not a run.
  bool feeds(const Draft& before, const Draft& after) const {
    for (auto i = after.begin; i < after.end; ++i)
      for (auto operand : document_.operands(order_[i])) {
        if (!operand) continue;
        const auto at = madeAt_[operand];
        if (at >= static_cast<std::int64_t>(before.begin) && at < static_cast<std::int64_t>(before.end)) return true;
      }
    return false;
  }

  void foldRuns(Draft& draft) {
    std::vector<Draft> folded;
    auto& all = draft.children;
    for (std::size_t i = 0; i < all.size();) {
      progress_.check();
      auto next = i + 1;
      if (all[i].kind == TreeNode::Kind::module) {
        const auto like = likeness(all[i]);
        while (next < all.size() && all[next].kind == TreeNode::Kind::module &&
               all[next].end - all[next].begin == all[i].end - all[i].begin && feeds(all[next - 1], all[next]) &&
               likeness(all[next]) == like)
          ++next;
      }
      if (next - i < shortestRun) {
        next = i + 1;
        folded.push_back(std::move(all[i]));
        foldRuns(folded.back());
      } else {
        Draft run;
        run.kind = TreeNode::Kind::run;
        run.label = all[i].label + " \xe2\x80\xa6 " + all[next - 1].label;
        run.module = all[i].module;
        run.begin = all[i].begin;
        run.end = all[next - 1].end;
        for (auto k = i; k < next; ++k) {
          foldRuns(all[k]);
          run.children.push_back(std::move(all[k]));
        }
        folded.push_back(std::move(run));
      }
      i = next;
    }
    draft.children = std::move(folded);
  }

  /// A module that holds a single thing is that thing: "h" with nothing but a run is the run, a module of one op the
  /// op.
  void simplify(Draft& draft) {
    for (auto& child : draft.children) simplify(child);
    if (draft.children.size() != 1) return;
    auto& only = draft.children.front();
    if (draft.kind == TreeNode::Kind::root) {
      if (only.kind != TreeNode::Kind::module) return;
      draft.label = only.label;
      auto children = std::move(only.children);
      draft.children = std::move(children);
    } else if (draft.kind == TreeNode::Kind::module) {
      auto label = !only.label.empty() ? draft.label + "." + only.label : draft.label;
      auto inner = std::move(only);
      inner.label = std::move(label);
      draft = std::move(inner);
    }
  }

  std::int32_t append(const Draft& draft, std::int32_t parent, std::int32_t ordinal, std::uint8_t depth) {
    const auto index = add(draft.kind, parent, ordinal, depth, draft.module);
    if (!draft.label.empty()) {
      node(index).label = static_cast<std::int32_t>(tree_.labels_.size());
      tree_.labels_.push_back(draft.label);
    }
    LaneArray<std::int32_t> ops{};
    std::int32_t children = 0;
    if (draft.kind == TreeNode::Kind::operation) {
      const auto& rung = rungs_[draft.rung];
      node(index).op = rung.operation;
      for (auto lane : bothLanes)
        for (auto op : rung.ops[lane]) {
          const auto leaf =
              add(TreeNode::Kind::op, index, children++, static_cast<std::uint8_t>(depth + 1), draft.module);
          node(leaf).lane = static_cast<Lane>(lane);
          node(leaf).op = op;
          node(leaf).ops[lane] = 1;
          node(leaf).end = leaf + 1;
          tree_.nodeOf_[op] = leaf;
          for (auto output : document_.outputs(op))
            if (output) tree_.makers_[output] = leaf;
          ++ops[lane];
        }
    }
    for (const auto& child : draft.children) {
      const auto at = append(child, index, children++, static_cast<std::uint8_t>(depth + 1));
      for (auto lane : bothLanes) ops[lane] += node(at).ops[lane];
    }
    node(index).end = tree_.size();
    node(index).ops = ops;
    node(index).childCount = children;
    return index;
  }

  std::int32_t add(TreeNode::Kind kind, std::int32_t parent, std::int32_t ordinal, std::uint8_t depth,
                   StringId module) {
    TreeNode made;
    made.kind = kind;
    made.parent = parent;
    made.ordinal = ordinal;
    made.depth = depth;
    made.module = module;
    tree_.nodes_.push_back(made);
    return tree_.size() - 1;
  }
  TreeNode& node(std::int32_t i) { return tree_.nodes_[i]; }

  const Document& document_;
  const Progress& progress_;
  std::vector<Rung> rungs_;
  std::vector<BoundSymbolId> order_;
  IdVector<ValueId, std::int64_t> madeAt_;  ///< position of the op that makes it; -1: none here
  GraphTree tree_;
};

bool GraphTree::canOpen(std::int32_t i) const {
  const auto& n = node(i);
  if (n.kind == TreeNode::Kind::op) return false;
  return n.kind != TreeNode::Kind::operation || n.ops[Lane::forward] > 1 || n.ops[Lane::backward] > 1;
}

std::string_view GraphTree::label(std::int32_t i) const {
  const auto& n = node(i);
  return n.label < 0 ? std::string_view() : std::string_view(labels_[n.label]);
}

std::int32_t GraphTree::nodeOf(BoundSymbolId op) const { return nodeOf_.contains(op) ? nodeOf_[op] : -1; }

std::string_view GraphTree::valueName(ValueId value) const {
  const auto known = names_.find(value);
  if (known != names_.end()) return known->second;
  const auto& entry = document_->value(value);
  return entry.name ? document_->text(entry.name) : std::string_view();
}

std::size_t GraphTree::bytes() const {
  return nodes_.capacity() * sizeof(TreeNode) + (nodeOf_.capacity() + makers_.capacity()) * sizeof(std::int32_t) +
         flows_.capacity() * sizeof(Flow) + saved_.capacity() * sizeof(SavedFlow) + edges_.capacity() * sizeof(OpEdge) +
         incoming_.capacity() * sizeof(std::int32_t) +
         (flowBegin_.capacity() + savedBegin_.capacity() + edgeBegin_.capacity() + incomingBegin_.capacity()) *
             sizeof(std::uint32_t) +
         labels_.capacity() * sizeof(std::string) + results_.capacity() / 8;
}

std::string_view name(EdgeKind kind) {
  constexpr EnumArray<EdgeKind, std::string_view, edgeKindCount> names{"data", "saved", "gradient", "accumulation",
                                                                       "origin"};
  return names[kind];
}

GraphTree buildTree(const Document& document, const Trace& trace, const Computation* computation,
                    const Progress& progress) {
  auto tree = TreeBuilder(document, trace, progress).run(trace, computation);
  liftEdges(tree, progress);
  measureBoxes(tree);
  hashStructure(tree);
  return tree;
}

}  // namespace retrograd::layout
