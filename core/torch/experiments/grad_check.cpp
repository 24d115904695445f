#include "core/torch/experiments/grad_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/questions/lost_backward.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/eager.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {
namespace {

class Extraction {
 public:
  Extraction(const Analysis& analysis, const std::vector<BoundSymbolId>& ops)
      : analysis_(analysis), document_(*analysis.document), ops_(ops) {
    file_.path = analysis.file.path;
    file_.document = std::make_shared<Document>(document_);
    file_.torchVersion = analysis.file.torchVersion;
  }

  ModelFile run(const Progress& progress) {
    const auto& all = analysis_.computation().trace.ops;
    const auto begin = std::ranges::find(all, ops_.empty() ? BoundSymbolId() : ops_.front());
    if (begin == all.end() || all.end() - begin < std::ssize(ops_) || !std::equal(ops_.begin(), ops_.end(), begin))
      throw Error(ErrorCode::badUse, "the ops are not a range of the computation");
    const KeepGenerator keep(analysis_.request.seed);
    at::AutoGradMode noGrad(false);
    EagerInterpreter interpreter(analysis_);
    bindInputs(interpreter);
    for (auto op = all.begin(); op != begin; ++op) {
      progress.check();
      interpreter.run({*op});
    }
    for (auto op : ops_)
      for (auto operand : document_.operands(op)) take(operand, interpreter);
    for (auto op : ops_)
      for (auto output : document_.outputs(op)) offer(output, begin + std::ssize(ops_));
    file_.computation.trace.ops = ops_;
    file_.computation.trace.name = "computation";
    return std::move(file_);
  }

 private:
  void bindInputs(EagerInterpreter& interpreter) const {
    const auto& computation = analysis_.computation();
    for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
      const auto id = computation.trace.inputs[i];
      if (!id) continue;
      const auto number = analysis_.request.numbers.find(computation.inputs[i].name);
      if (computation.inputs[i].kind == InputKind::user && number != analysis_.request.numbers.end()) {
        interpreter.bind(id, toIValue(number->second, c10::AnyType::get(), {}));
      } else {
        const auto tensor = inputTensor(analysis_, i);
        interpreter.bind(id, tensor.defined() ? c10::IValue(tensor.clone()) : c10::IValue());
      }
    }
  }

  void take(ValueId id, const EagerInterpreter& interpreter) {
    if (!id || made_.contains(id) || !taken_.insert(id).second) return;
    for (auto op : ops_) {
      const auto outputs = document_.outputs(op);
      if (std::ranges::find(outputs, id) != outputs.end()) return;  // made within the range
    }
    const auto& value = interpreter.value(id);
    InputSpec spec{.name = document_.displayName(id)};
    spec.target = spec.name;
    spec.value = id;
    auto& stored = file_.document->value(id);
    stored.kind = ValueKind::input;
    stored.producer = {};
    stored.storage = {};
    if (value.isTensor() && value.toTensor().defined()) {
      auto data = copyOut(value.toTensor());
      stored.meta = file_.document->internMeta(data.meta);
      file_.sampleInputs[spec.name] = std::move(data);
      spec.requiresGrad = true;
    } else if (const auto number = numberArgument(value)) {
      file_.sampleNumbers[spec.name] = *number;
      stored.meta = {};
    }
    file_.computation.inputs.push_back(spec);
    file_.computation.trace.inputs.push_back(id);
  }

  /// Read after the range, returned, or read by nobody.
  void offer(ValueId id, std::vector<BoundSymbolId>::const_iterator after) {
    if (!id || !made_.insert(id).second) return;
    const auto reads = [&](BoundSymbolId op) {
      const auto operands = document_.operands(op);
      return std::ranges::find(operands, id) != operands.end();
    };
    const auto& computation = analysis_.computation();
    const bool inside = std::ranges::any_of(ops_, reads);
    const bool outside = std::any_of(after, computation.trace.ops.end(), reads);
    const bool returned = std::ranges::find(computation.trace.outputs, id) != computation.trace.outputs.end();
    if (inside && !outside && !returned) return;
    file_.computation.outputs.push_back({.value = id});
    file_.computation.trace.outputs.push_back(id);
  }

  const Analysis& analysis_;
  const Document& document_;
  const std::vector<BoundSymbolId>& ops_;
  ModelFile file_;
  std::set<ValueId> made_, taken_;
};

/// The real inner product, conjugating `a`: what a gradient of a real function is taken with.
double innerProduct(const at::Tensor& a, const at::Tensor& b) {
  return a.conj().mul(b).sum().item().toComplexDouble().real();
}

double largest(const at::Tensor& tensor) { return tensor.numel() ? tensor.abs().max().item().toDouble() : 0; }
bool isZero(const TensorData& data) { return largest(borrowTensor(data)) == 0; }

double relativeDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  const auto scale = std::max(largest(a), largest(b));
  return scale > 0 ? largest(a.sub(b)) / scale : 0;
}

/// <cotangents, outputs> of the forward with an input moved.
double objective(const Analysis& analysis, const std::string& input, const at::Tensor& moved) {
  at::AutoGradMode noGrad(false);
  auto evaluator = evaluatorOf(analysis, inputValues(analysis));
  const auto& computation = analysis.computation();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    if (computation.inputs[i].name == input) evaluator.bind(computation.trace.inputs[i], moved);
  for (auto op : analysis.forward.ops) evaluator.run(op);
  double sum = 0;
  for (auto& [id, cotangent] : cotangentValues(analysis)) {
    std::size_t i = 0;
    while (analysis.joint.inputs[computation.trace.inputs.size() + i] != id) ++i;
    const auto output = evaluator.tensor(analysis.joint.outputs[i]);
    sum += innerProduct(cotangent.toTensor(), output);
  }
  return sum;
}

GradientCheckRow checkInput(const Analysis& analysis, const std::string& name, const TensorMap& ours,
                            const TensorMap& theirs, std::size_t directions) {
  GradientCheckRow row{.input = name};
  const auto found = ours.find("in." + name), eager = theirs.find("in." + name);
  if (found == ours.end() || eager == theirs.end()) {
    const bool same =
        (found == ours.end() || isZero(found->second)) && (eager == theirs.end() || isZero(eager->second));
    row.note = same ? "no gradient" : found == ours.end() ? "LibTorch has a gradient" : "LibTorch has no gradient";
    row.libTorch = same ? 0 : std::numeric_limits<double>::infinity();
    return row;
  }
  row.libTorch = relativeDifference(borrowTensor(found->second), borrowTensor(eager->second));
  const auto gradient = borrowTensor(found->second), point = borrowTensor(analysis.request.inputs.at(name));
  for (std::size_t k = 0; k < directions; ++k) {
    const auto direction = at::randn(point.sizes(), point.options());
    const double step = 1e-6 * std::max(1.0, largest(point));
    const double difference = (objective(analysis, name, point.add(direction, step)) -
                               objective(analysis, name, point.sub(direction, step))) /
                              (2 * step);
    const double derivative = innerProduct(gradient, direction);
    const double scale =
        std::max({std::abs(difference), std::abs(derivative), 1e-6 * gradient.norm().item().toDouble(), 1e-12});
    row.finiteDifferences = std::max(row.finiteDifferences, std::abs(difference - derivative) / scale);
  }
  return row;
}

}  // namespace

ModelFile extractOps(const Analysis& analysis, const std::vector<BoundSymbolId>& ops, const Progress& progress) {
  return Extraction(analysis, ops).run(progress);
}

GradientCheck checkGradients(const Analysis& analysis, const std::vector<BoundSymbolId>& ops,
                             const Progress& progress) {
  const DerivationRequest options{
      .seed = analysis.request.seed, .precision = DType::f64, .rules = analysis.request.rules};
  const auto part = analyse(extractOps(analysis, ops, progress), options, progress);
  if (!part->derived())
    throw Error(ErrorCode::execution, part->problems.empty() ? "it cannot be derived" : part->problems.back().message,
                part->problems.empty() ? "" : part->problems.back().place);
  const KeepGenerator keep(analysis.request.seed);
  GradientCheck check{.directions = 4};
  const auto ours = runSplit(*part).gradients, theirs = runEager(*part).gradients;
  check.lostBackwards = lostBackwards(*analysis.document, ops);
  check.passed = true;
  for (const auto& input : part->computation().inputs) {
    if (!part->document->value(input.value).requiresGrad) continue;
    progress.check();
    check.rows.push_back(checkInput(*part, input.name, ours, theirs, check.directions));
    check.passed &= check.rows.back().finiteDifferences <= GradientCheck::finiteTolerance &&
                    check.rows.back().libTorch <= GradientCheck::libTorchTolerance;
  }
  return check;
}

}  // namespace retrograd
