#pragma once
#include <algorithm>
#include <memory>

#include "core/layout/graph_tree.h"
#include "tests/core/trace/build.h"

namespace retrograd::test {

/// A joint by hand whose ops are in modules: forward ops with a computation op each, then backward() over all of
/// them.
struct Ladder {
  Builder b;

  BoundSymbolId from(const std::string& op, const std::string& module) {
    BoundSymbol bound;
    bound.symbol = b.symbol(op + ".source", 0, 0);
    bound.pattern = b.document.internPattern({});
    bound.name = b.document.intern(op);
    if (!module.empty()) bound.module = b.document.intern(module);
    return b.document.addBoundSymbol(bound, {}, {});
  }
  ValueId forward(const std::string& op, std::vector<ValueId> operands, const std::string& module) {
    const auto made = b.call(op, std::move(operands), {from(op, module), Role::forward});
    if (!module.empty()) b.document.boundSymbol(b.trace.ops.back()).module = b.document.intern(module);
    b.trace.kind = TraceKind::joint;
    b.trace.forwardCount = b.trace.ops.size();
    return made;
  }
  void border() {
    b.trace.kind = TraceKind::joint;
    b.trace.forwardCount = b.trace.ops.size();
  }
  /// `count` modules "h.i" of two ops, one behind the other.
  void layers(int count) {
    auto x = b.input("x", {4});
    for (int i = 0; i < count; ++i) {
      const auto module = "h." + std::to_string(i);
      x = forward("aten.sin.default", {x}, module);
      x = forward("aten.cos.default", {x}, module);
    }
  }
  /// For each forward op, in reverse, an op of role gradient that reads the gradient so far and the forward op's
  /// output.
  void backward() {
    border();
    auto g = b.input("cotangent", {4}, ValueKind::cotangent);
    const auto forward = b.trace.ops;
    for (auto it = forward.rbegin(); it != forward.rend(); ++it) {
      const auto kept = b.document.outputs(*it)[0];
      g = b.call("aten.mul.Tensor", {g, kept}, {b.document.boundSymbol(*it).origin.op, Role::gradient});
    }
  }

  layout::GraphTree tree() const { return layout::buildTree(b.document, b.trace); }
  std::shared_ptr<const layout::GraphTree> sharedTree() const {
    return std::make_shared<const layout::GraphTree>(tree());
  }
};

}  // namespace retrograd::test
