#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/verifier.h"
#include "tests/core/trace/build.h"

namespace retrograd::test {

/// A joint by hand: forward ops, then backward(), then gradient ops. Every op represents a computation op of its own.
struct JointBuilder : Builder {
  BoundSymbolId from(const std::string& node, const std::string& module = {}, BoundSymbolId parent = {}) {
    BoundSymbol bound;
    bound.symbol = symbol("aten.source.default", 0, 0);
    bound.pattern = document.internPattern({});
    bound.name = document.intern(node);
    bound.parent = parent;
    if (!module.empty()) bound.module = document.intern(module);
    return document.addBoundSymbol(bound, {}, {});
  }

  BoundSymbolId lastOp() const { return trace.ops.back(); }

  /// A forward op with one output; `name` names the output and the node.
  ValueId forward(const std::string& op, std::vector<ValueId> operands, const std::string& name,
                  std::uint8_t effects = 0, const std::string& module = {}, BoundSymbolId parent = {}) {
    const auto sizes = operands.empty() ? std::vector<std::int64_t>{4} : document.meta(operands[0]).sizes;
    return make(op, std::move(operands), name, sizes, {}, {from(name, module, parent), Role::forward}, effects, module);
  }
  /// A view of `base`.
  ValueId view(const std::string& op, ValueId base, const std::string& name, std::vector<std::int64_t> sizes) {
    return make(op, {base}, name, std::move(sizes), document.value(base).storage, {from(name), Role::forward},
                effect::view, {});
  }
  /// An op that writes its first operand and returns it as a new value.
  ValueId write(const std::string& op, std::vector<ValueId> operands, const std::string& name,
                std::uint8_t effects = 0) {
    if (!document.findSymbol(op)) {
      Symbol s;
      s.name = op;
      s.known = s.isMutable = true;
      for (std::size_t i = 0; i < operands.size(); ++i) s.arguments.push_back(entry("a" + std::to_string(i)));
      s.arguments[0].isWrite = true;
      s.returns.push_back(entry(""));
      document.internSymbol(s);
    }
    const auto self = operands[0];
    return make(op, std::move(operands), name, document.meta(self).sizes, document.value(self).storage,
                {from(name), Role::forward}, static_cast<std::uint8_t>(effects | effect::writes), {});
  }

  void backward(std::vector<ValueId> results) {
    trace.kind = TraceKind::joint;
    trace.name = "joint";
    trace.forwardCount = trace.ops.size();
    trace.outputs = std::move(results);
    trace.resultCount = trace.outputs.size();
  }
  ValueId cotangent(std::vector<std::int64_t> sizes) {
    return input("cotangent", std::move(sizes), ValueKind::cotangent);
  }
  ValueId gradient(const std::string& op, std::vector<ValueId> operands, const std::string& name = {}) {
    const auto sizes = document.meta(operands[0]).sizes;
    return make(op, std::move(operands), name, sizes, {}, {from("gradient"), Role::gradient}, 0, {});
  }

  OpMarks marks(std::initializer_list<ValueId> of) const {
    OpMarks marks(document.boundSymbolCount(), 0);
    for (auto value : of) marks[document.value(value).producer] = 1;
    return marks;
  }

  /// "bw_a = sin(x)" for each op behind the border.
  std::vector<std::string> backwardOf(const Trace& joint) const {
    std::vector<std::string> lines;
    for (std::size_t i = joint.forwardCount; i < joint.ops.size(); ++i) lines.push_back(line(joint.ops[i]));
    return lines;
  }
  std::vector<std::string> forwardOf(const Trace& joint) const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < joint.forwardCount; ++i) lines.push_back(line(joint.ops[i]));
    return lines;
  }
  std::string line(BoundSymbolId op) const {
    std::string text, operands;
    for (auto output : document.outputs(op)) text += (text.empty() ? "" : ", ") + document.displayName(output);
    for (auto operand : document.operands(op))
      operands += (operands.empty() ? "" : ", ") + document.displayName(operand);
    const auto& name = document.symbol(op).name;
    return text + " = " + name.substr(5, name.rfind('.') - 5) + "(" + operands + ")";
  }

  std::vector<std::string> problems(const Trace& joint) const {
    std::vector<std::string> found;
    for (const auto& problem : verify(document, joint)) found.push_back(problem.place + ": " + problem.message);
    return found;
  }

 private:
  ValueId make(const std::string& op, std::vector<ValueId> operands, const std::string& name,
               std::vector<std::int64_t> sizes, StorageId storage, Origin origin, std::uint8_t effects,
               const std::string& module) {
    const auto out = value(std::move(sizes), ValueKind::activation, name, storage);
    if (!storage) document.storage(out).bytes = document.meta(out).bytes();
    const auto id = bind(symbol(op, static_cast<int>(operands.size())), operands, {out}, origin, effects);
    document.value(out).producer = id;
    if (!module.empty()) document.boundSymbol(id).module = document.intern(module);
    return out;
  }
};

using Lines = std::vector<std::string>;

}  // namespace retrograd::test
