#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "core/trace/trace.h"

namespace retrograd::test {

/// Builds small documents by hand: `Builder b; auto x = b.input("x", {2}); auto y = b.call("aten.sin.default", {x});`
struct Builder {
  Document document;
  Trace trace;

  static SchemaEntry entry(std::string name, std::string type = "Tensor") {
    return {std::move(name), std::move(type), false, {}, -1, false};
  }

  SymbolId symbol(const std::string& name, int tensors = 1, int returns = 1) {
    if (auto id = document.findSymbol(name)) return id;
    Symbol s;
    s.name = name;
    s.known = true;
    for (int i = 0; i < tensors; ++i) s.arguments.push_back(entry("a" + std::to_string(i)));
    for (int i = 0; i < returns; ++i) s.returns.push_back(entry(""));
    return document.internSymbol(s);
  }

  MetaId meta(std::vector<std::int64_t> sizes, DType dtype = DType::f32) {
    TensorMeta m;
    m.dtype = dtype;
    m.strides = contiguousStrides(sizes);
    m.sizes = std::move(sizes);
    return document.internMeta(m);
  }

  ValueId value(std::vector<std::int64_t> sizes, ValueKind kind = ValueKind::activation, const std::string& name = {},
                StorageId storage = {}) {
    Value v;
    if (!name.empty()) v.name = document.intern(name);
    v.meta = meta(std::move(sizes));
    v.kind = kind;
    const bool external = kind != ValueKind::activation && kind != ValueKind::gradient;
    v.storage = storage ? storage : document.addStorage(document.meta(v.meta).storageBytes(), {}, external);
    v.requiresGrad = kind == ValueKind::input || kind == ValueKind::parameter;
    return document.addValue(v);
  }

  ValueId input(const std::string& name, std::vector<std::int64_t> sizes, ValueKind kind = ValueKind::input) {
    const auto v = value(std::move(sizes), kind, name);
    trace.inputs.push_back(v);
    return v;
  }

  /// A bound symbol with the operands as positional arguments; appended to the trace.
  BoundSymbolId bind(SymbolId symbol, std::vector<ValueId> operands, std::vector<ValueId> outputs, Origin origin = {},
                     std::uint8_t effects = 0) {
    CallPattern pattern;
    for (std::size_t i = 0; i < operands.size(); ++i)
      pattern.arguments.push_back(Argument::ofOperand(static_cast<std::int64_t>(i)));
    pattern.operandCount = static_cast<std::int32_t>(operands.size());
    return bind(symbol, std::move(pattern), std::move(operands), std::move(outputs), origin, effects);
  }
  BoundSymbolId bind(SymbolId symbol, CallPattern pattern, std::vector<ValueId> operands, std::vector<ValueId> outputs,
                     Origin origin = {}, std::uint8_t effects = 0) {
    BoundSymbol bound;
    bound.symbol = symbol;
    bound.pattern = document.internPattern(pattern);
    bound.origin = origin;
    bound.effects = effects;
    const auto id = document.addBoundSymbol(bound, operands, outputs);
    trace.ops.push_back(id);
    return id;
  }

  /// One output of the shape of the first operand.
  ValueId call(const std::string& name, std::vector<ValueId> operands, Origin origin = {}, std::uint8_t effects = 0) {
    const auto out = value(document.meta(operands.at(0)).sizes);
    const auto id = bind(symbol(name, static_cast<int>(operands.size())), operands, {out}, origin, effects);
    document.value(out).producer = id;
    return out;
  }

  /// `name(self, other)` that writes self and returns it as a new value of the same storage.
  ValueId inPlace(const std::string& name, ValueId self, std::vector<ValueId> others = {}) {
    auto s = symbol(name, 1 + static_cast<int>(others.size()));
    if (!document.symbol(s).isMutable) {
      Symbol changed = document.symbol(s);
      changed.name = name + "_";
      changed.isMutable = true;
      changed.arguments[0].isWrite = true;
      s = document.internSymbol(changed);
    }
    const auto out = value(document.meta(self).sizes, ValueKind::activation, {}, document.value(self).storage);
    others.insert(others.begin(), self);
    bind(s, others, {out}, {}, effect::writes);
    return out;
  }
};

}  // namespace retrograd::test
