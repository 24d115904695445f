#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/session_file/session_file.h"
#include "core/split/partition.h"
#include "core/trace/effects.h"
#include "tests/core/formats/stub_symbols.h"

namespace retrograd::test {

/// A session by hand, with the ops of stub_symbols.h: y = sum(sin(x) + w), its joint trace with an accumulation, and
/// the halves of it.
class SessionBuilder {
 public:
  SessionBuilder() {
    session_.model.path = "/nowhere/model.pt2";
    session_.model.torchVersion = "2.15";
    session_.model.document = std::make_shared<Document>();
    session_.model.embedded = true;
  }

  SessionFile build() {
    const auto x = input(InputKind::user, "x"), w = input(InputKind::parameter, "w");
    const auto sine = value("sine", {2, 3}), shifted = value("shifted", {2, 3}), y = value("y", {});
    const std::vector<BoundSymbolId> computation{op("aten.sin.default", {x}, sine),
                                                 op("aten.add.Tensor", {sine, w}, shifted),
                                                 op("aten.sum.default", {shifted}, y)};
    auto& model = session_.model;
    model.computation.outputs.push_back({OutputKind::user, y, {}, {}});
    auto& trace = model.computation.trace;
    trace.name = "computation";
    trace.ops = computation;
    trace.inputs = {x, w};
    trace.outputs = {y};
    trace.resultCount = 1;
    trace.history.push_back({"Read", {{"torch", "2.15"}}, "", 0.25, {}});
    addJoint(x, w, sine, shifted, y, computation);
    addTensors(y);
    return std::move(session_);
  }

  static TensorData tensor(std::vector<std::int64_t> sizes, float first) {
    TensorData data;
    data.meta.strides = contiguousStrides(sizes);
    data.meta.sizes = std::move(sizes);
    auto numbers = std::make_shared<std::vector<float>>(static_cast<std::size_t>(data.meta.elements()));
    for (std::size_t i = 0; i < numbers->size(); ++i) (*numbers)[i] = first + static_cast<float>(i);
    data.data = reinterpret_cast<const std::byte*>(numbers->data());
    data.bytes = numbers->size() * sizeof(float);
    data.owner = numbers;
    return data;
  }

 private:
  Document& document() { return *session_.model.document; }

  ValueId value(const std::string& name, std::vector<std::int64_t> sizes, ValueKind kind = ValueKind::activation) {
    TensorMeta meta;
    meta.strides = contiguousStrides(sizes);
    meta.sizes = std::move(sizes);
    Value value;
    if (!name.empty()) value.name = document().intern(name);
    value.meta = document().internMeta(meta);
    value.kind = kind;
    const bool external = kind != ValueKind::activation && kind != ValueKind::gradient;
    value.storage = document().addStorage(meta.bytes(), {}, external);
    const auto id = document().addValue(value);
    document().storage(value.storage).first = id;
    return id;
  }

  ValueId input(InputKind kind, const std::string& name) {
    const auto id = value(name, {2, 3}, kind == InputKind::user ? ValueKind::input : ValueKind::parameter);
    document().value(id).requiresGrad = true;
    InputSpec spec;
    spec.kind = kind;
    spec.name = spec.target = name;
    spec.requiresGrad = true;
    spec.value = id;
    session_.model.computation.inputs.push_back(spec);
    return id;
  }

  BoundSymbolId op(const std::string& name, std::vector<ValueId> operands, ValueId output, const Origin& origin = {}) {
    const auto symbol = *stubLookup(name);
    CallPattern pattern;
    for (std::size_t i = 0; i < operands.size(); ++i)
      pattern.arguments.push_back(Argument::ofOperand(static_cast<std::int64_t>(i)));
    pattern.arguments.resize(symbol.arguments.size(), Argument::ofMissing());
    pattern.operandCount = static_cast<std::int32_t>(operands.size());
    BoundSymbol bound;
    bound.symbol = document().internSymbol(symbol);
    bound.effects = effectsOf(symbol, pattern.arguments);
    bound.pattern = document().internPattern(pattern);
    bound.origin = origin;
    bound.source = document().internSource({{"model.py", 7, "forward", "y = torch.sin(x) + self.w"}});
    bound.module = document().intern("layer.0");
    const auto id = document().addBoundSymbol(bound, operands, {&output, 1});
    if (!document().value(output).producer) document().value(output).producer = id;
    return id;
  }

  /// The gradients are not those of the model: what is saved is not asked what it means.
  void addJoint(ValueId x, ValueId w, ValueId sine, ValueId shifted, ValueId y,
                const std::vector<BoundSymbolId>& from) {
    const auto origin = [&](std::size_t i, Role role, ValueId of = {}) {
      return Origin{.op = from[i], .role = role, .operand = 0, .value = of};
    };
    const auto cotangent = value("cotangent_0", {}, ValueKind::cotangent);
    const auto cosine = value("", {2, 3}), gradient = value("", {2, 3}),
               literal = value("", {2, 3}, ValueKind::constant);
    auto& joint = session_.joint;
    joint.kind = TraceKind::joint;
    joint.name = "joint";
    joint.ops = {op("aten.sin.default", {x}, sine, origin(0, Role::forward)),
                 op("aten.add.Tensor", {sine, w}, shifted, origin(1, Role::forward)),
                 op("aten.sum.default", {shifted}, y, origin(2, Role::forward))};
    joint.forwardCount = joint.ops.size();
    joint.ops.push_back(op("aten.cos.default", {x}, cosine, origin(0, Role::gradient, x)));
    auto sum = origin(0, Role::accumulation, x);
    document().setTerms(sum, std::vector{cosine, literal});
    joint.ops.push_back(op("aten.add.Tensor", {cosine, literal}, gradient, sum));
    joint.inputs = {x, w, cotangent};
    joint.outputs = {y, gradient, cosine};
    joint.resultCount = 1;
    joint.history = session_.model.computation.trace.history;
    joint.history.push_back({"Grad transform", {}, "computation", 0.5, {{from[0], joint.ops[0]}}});
    auto [forward, backward] = splitJoint(document(), joint, 2);
    forward.history = backward.history = joint.history;
    session_.forward = std::move(forward);
    session_.backward = std::move(backward);
    session_.cotangents["0"] = tensor({}, 1);
    session_.constants[literal] = tensor({2, 3}, 10);
  }

  void addTensors(ValueId y) {
    session_.model.weights["w"] = tensor({2, 3}, 2);
    session_.inputs["x"] = session_.model.sampleInputs["x"] = tensor({2, 3}, 0);
    session_.model.guards = {"L['x'].size()[0] % 2 == 0"};
    session_.model.sampleNumbers["n"] = session_.numbers["n"] = Argument::ofReal(0.5);
    session_.inputSource = {"x: sample input of the file"};
    session_.mutated[0] = y;
    session_.gradients[y] = y;
    session_.dataDependent = {"aten.nonzero.default"};
    session_.problems = {{Problem::Severity::note, "a note", "place", 0}};
    session_.seed = 0xfedcba9876543210;
    session_.minCut = true;
    session_.precision = DType::bf16;
    session_.budget = 4096;
    session_.recompute = {"layer.0", "#sine"};
    session_.gradInputs = std::vector<std::string>{"x"};
    session_.seconds = {{"joint", 0.125}};
    session_.values[y] = tensor({}, 42);
    session_.valueNumbers[y] = Argument::ofInt(7);
    session_.marks["breakpoints"] = R"([{"op": 3,  "on": true}])";
  }

  SessionFile session_;
};

}  // namespace retrograd::test
