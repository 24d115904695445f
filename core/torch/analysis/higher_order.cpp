#include "core/torch/analysis/higher_order.h"

#include <algorithm>

#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/evaluator.h"

namespace retrograd {
namespace {

class Conversion {
 public:
  Conversion(const Analysis& analysis, const Trace& trace) : analysis_(analysis), trace_(trace) {
    file_.path = analysis.file.path;
    file_.identity = analysis.file.identity;
    file_.torchVersion = analysis.file.torchVersion;
    file_.document = std::make_shared<Document>(*analysis.document);
    file_.weights = analysis.file.weights;
    file_.constants = analysis.file.constants;
    file_.sampleNumbers = analysis.request.numbers;
  }

  ModelFile run() {
    prepareOps();
    for (std::size_t i = 0; i < trace_.inputs.size(); ++i) addInput(i);
    addLiterals();
    for (std::size_t i = 0; i < trace_.outputs.size(); ++i) addOutput(i);
    auto& computation = file_.computation.trace;
    computation.name = "computation";
    computation.ops = trace_.ops;
    computation.history = trace_.history;
    computation.history.push_back({"Differentiate again", {{"trace", trace_.name}}, trace_.name, 0, {}});
    return std::move(file_);
  }

 private:
  /// The ops become those of a computation: without origin (the first document keeps it, under the same ids), the
  /// backward's with grad mode as the forward's.
  void prepareOps() {
    auto& document = *file_.document;
    for (const auto value : document.valueIds()) document.value(value).requiresGrad = false;
    for (auto op : trace_.ops) {
      auto& bound = document.boundSymbol(op);
      if (bound.origin.role != Role::forward) bound.gradMode = true;
      bound.origin = {};
      bound.parent = {};
      const auto outputs = std::as_const(document).outputs(op);
      if (!bound.name && !outputs.empty() && outputs[0]) bound.name = document.intern(document.displayName(outputs[0]));
    }
  }

  void addInput(std::size_t i) {
    const auto id = trace_.inputs[i];
    const auto& original = analysis_.computation();
    const auto known = std::ranges::find(original.trace.inputs, id);
    if (id && known != original.trace.inputs.end()) {
      const auto& spec = original.inputs[known - original.trace.inputs.begin()];
      if (auto sample = analysis_.request.inputs.find(spec.name);
          spec.kind == InputKind::user && sample != analysis_.request.inputs.end())
        file_.sampleInputs[spec.name] = sample->second;
      return add(id, spec);
    }
    if (!id) return;
    InputSpec spec{.name = file_.document->displayName(id)};
    spec.target = spec.name;
    spec.value = id;
    auto& value = file_.document->value(id);
    value.kind = ValueKind::input;
    spec.requiresGrad = value.meta && isDifferentiable(file_.document->meta(value.meta).dtype);
    file_.sampleInputs[spec.name] = tensorOf(id);
    add(id, spec);
  }

  void add(ValueId id, InputSpec spec) {
    file_.computation.trace.inputs.push_back(id);
    file_.computation.inputs.push_back(std::move(spec));
  }

  /// A cotangent, or a value that the forward saved.
  TensorData tensorOf(ValueId id) {
    for (auto& [cotangent, value] : cotangentValues(analysis_))
      if (cotangent == id) return copyOut(value.toTensor());
    if (!forward_) {
      forward_ = std::make_unique<Evaluator>(evaluatorOf(analysis_, inputValues(analysis_)));
      for (auto op : analysis_.forward.ops) forward_->run(op);
    }
    return copyOut(forward_->tensor(id));
  }

  /// Literals inside formulas are constants of the new computation.
  void addLiterals() {
    for (const auto& literal : analysis_.constants) {
      const auto id = literal.first;
      const auto reads = [&](BoundSymbolId op) {
        const auto operands = std::as_const(*file_.document).operands(op);
        return std::ranges::find(operands, id) != operands.end();
      };
      if (std::ranges::none_of(trace_.ops, reads)) continue;
      InputSpec spec{.kind = InputKind::constant, .name = file_.document->displayName(id)};
      spec.target = "literal " + spec.name;
      spec.value = id;
      file_.constants[spec.target] = literal.second;
      add(id, std::move(spec));
    }
  }

  void addOutput(std::size_t i) {
    const auto& original = analysis_.computation().outputs;
    OutputSpec spec;
    if (trace_.kind == TraceKind::joint && i < trace_.resultCount && i < original.size()) {
      spec = original[i];
    } else if (!trace_.outputs[i]) {
      return;  // no gradient
    }
    spec.value = trace_.outputs[i];
    file_.computation.outputs.push_back(spec);
    file_.computation.trace.outputs.push_back(trace_.outputs[i]);
  }

  const Analysis& analysis_;
  const Trace& trace_;
  ModelFile file_;
  std::unique_ptr<Evaluator> forward_;
};

}  // namespace

int orderOf(const Analysis& analysis) { return analysis.differentiated ? orderOf(*analysis.differentiated) + 1 : 1; }

TraceKind differentiatedKind(const Analysis& analysis) {
  const bool isBackward =
      analysis.differentiated && analysis.computation().trace.ops == analysis.differentiated->backward.ops;
  return isBackward ? TraceKind::backward : TraceKind::joint;
}

const Analysis& firstOf(const Analysis& analysis) {
  return analysis.differentiated ? firstOf(*analysis.differentiated) : analysis;
}

ModelFile asModel(const Analysis& analysis, TraceKind kind) {
  if (kind != TraceKind::joint && kind != TraceKind::backward)
    throw Error(ErrorCode::badUse, "only a joint or a backward trace is differentiated again", std::string(name(kind)));
  return Conversion(analysis, kind == TraceKind::joint ? analysis.joint : analysis.backward).run();
}

}  // namespace retrograd
