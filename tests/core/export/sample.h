#pragma once
#include <string>

#include "core/export/export.h"
#include "tests/core/trace/build.h"

namespace retrograd::test {

/// y = relu(w * x) with its backward, made by hand: two modules, a saved value, hostile names.
inline Analysis sampleAnalysis() {
  Builder b;
  Analysis analysis;
  const auto x = b.input("x", {2}), w = b.input("w", {2}, ValueKind::parameter);
  const auto computationOp = [&](const std::string& name, std::vector<ValueId> operands, const std::string& module) {
    const auto out = b.call(name, std::move(operands));
    auto& bound = b.document.boundSymbol(b.document.value(out).producer);
    bound.module = b.document.intern(module);
    bound.name = b.document.intern("node_" + name.substr(5, name.rfind('.') - 5));
    return out;
  };
  const auto product = computationOp("aten.mul.Tensor", {x, w}, "layers.0"),
             y = computationOp("aten.relu.default", {product}, "layers.<1> & \"so\"");
  const auto mul = b.document.value(product).producer, relu = b.document.value(y).producer;
  auto& computation = analysis.file.computation;
  computation.trace = b.trace;
  computation.trace.outputs = {y};
  for (auto input : {x, w}) {
    InputSpec spec;
    spec.kind = input == x ? InputKind::user : InputKind::parameter;
    spec.name = spec.target = b.document.displayName(input);
    spec.value = input;
    computation.inputs.push_back(spec);
  }
  OutputSpec output;
  output.value = y;
  computation.outputs.push_back(output);

  b.trace = {};
  const auto derived = [&](const std::string& name, std::vector<ValueId> operands, Role role, BoundSymbolId from,
                           ValueId of = {}) {
    Origin origin;
    origin.op = from;
    origin.role = role;
    origin.value = of;
    return b.call(name, std::move(operands), origin);
  };
  const auto forwardProduct = derived("aten.mul.Tensor", {x, w}, Role::forward, mul);
  const auto forwardRelu = derived("aten.relu.default", {forwardProduct}, Role::forward, relu);
  const auto cotangent = b.value({2}, ValueKind::cotangent, "cotangent_0");
  const auto inner =
      derived("aten.threshold_backward.default", {cotangent, forwardRelu}, Role::gradient, relu, forwardProduct);
  const auto ofW = derived("aten.mul.Tensor", {inner, x}, Role::gradient, mul, w),
             ofX = derived("aten.mul.Tensor", {inner, w}, Role::gradient, mul, x);
  analysis.joint = b.trace;
  analysis.joint.kind = TraceKind::joint;
  analysis.joint.inputs = {x, w, cotangent};
  analysis.joint.outputs = {forwardRelu, ofX, ofW};
  analysis.joint.resultCount = 1;
  analysis.joint.forwardCount = 2;
  analysis.forward.kind = TraceKind::forward;
  analysis.forward.ops = {b.trace.ops[0], b.trace.ops[1]};
  analysis.forward.inputs = {x, w};
  analysis.forward.outputs = {forwardRelu, forwardRelu, x, w};
  analysis.forward.resultCount = 1;
  analysis.backward.kind = TraceKind::backward;
  analysis.backward.ops = {b.trace.ops[2], b.trace.ops[3], b.trace.ops[4]};
  analysis.backward.inputs = {forwardRelu, x, w, cotangent};
  analysis.backward.savedCount = 3;
  analysis.backward.outputs = {ofX, ofW};
  analysis.file.path = "models/<b>\"odd\".pt2";
  analysis.document = std::make_shared<Document>(std::move(b.document));
  analysis.links = OriginLinks(*analysis.document, analysis.joint);
  return analysis;
}

class TextSink final : public ExportSink {
 public:
  void write(std::string_view piece) override { text += piece; }
  std::string text;
};

/// What `format` writes of these traces; with a run of one millisecond an op where `measured`.
inline std::string exported(const Analysis& analysis, const std::string& format, const std::vector<TraceKind>& kinds,
                            bool measured = true) {
  TextSink sink;
  const auto* found = findExportFormat(format);
  if (!found) return "no such format";
  ExportRequest request{analysis, tracesOf(analysis, kinds.empty() ? found->traces : kinds), {}, ""};
  if (measured) request.measures.assign(analysis.joint.ops.size(), OpMeasure{1e-3, 0, 0});
  exportTo(sink, *found, request);
  return sink.text;
}

}  // namespace retrograd::test
