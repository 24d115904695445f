#include "core/torch/experiments/grad_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/formats/recording/recording.h"
#include "core/questions/lost_backward.h"
#include "core/questions/why.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/eager.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/tracing/generator.h"
#include "core/trace/op_traits.h"

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

bool isFinite(const at::Tensor& tensor) { return at::isfinite(tensor).all().item().toBool(); }

/// NaN where one of them has a number that is not finite.
double relativeDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (!isFinite(a) || !isFinite(b)) return std::numeric_limits<double>::quiet_NaN();
  const auto scale = std::max(largest(a), largest(b));
  return scale > 0 ? largest(a.sub(b)) / scale : 0;
}

/// <cotangents, outputs> of a forward as a function of one input. What is cut off from autograd stays as it is at the
/// point itself.
class Objective {
 public:
  explicit Objective(const Analysis& analysis) : analysis_(analysis), document_(*analysis.document) {
    for (const auto op : analysis.computation().trace.ops)
      if (isCut(op)) cuts_.push_back(op);
    atPoint_ = run(ValueId(), {}, &held_);
  }

  double atPoint() const { return atPoint_; }
  double at(ValueId input, const at::Tensor& moved) const { return run(input, moved, nullptr); }

  /// The first op that cuts off what the input leads to; none: nothing does.
  BoundSymbolId cutBehind(ValueId input) const {
    std::set<ValueId> leads{input};
    for (const auto op : analysis_.computation().trace.ops) {
      const auto operands = document_.operands(op);
      if (std::ranges::none_of(operands, [&](ValueId operand) { return leads.contains(operand); })) continue;
      if (std::ranges::find(cuts_, op) != cuts_.end()) return op;
      for (const auto output : document_.outputs(op)) leads.insert(output);
    }
    return {};
  }

 private:
  bool isCut(BoundSymbolId op) const {
    const auto& bound = document_.boundSymbol(op);
    if (bound.effects & effect::writes) return false;
    return hasTrait(document_.symbol(op).name, OpTrait::detach) || !bound.gradMode;
  }

  /// `keep`: takes what cuts make; null: they make what was kept.
  double run(ValueId input, const at::Tensor& moved, std::map<ValueId, at::Tensor>* keep) const {
    at::AutoGradMode noGrad(false);
    auto evaluator = evaluatorOf(analysis_, inputValues(analysis_));
    const auto& inputs = analysis_.computation().trace.inputs;
    if (input) evaluator.bind(input, moved);
    for (auto op : analysis_.forward.ops) {
      evaluator.run(op);  // a cut, too: it may draw
      if (std::ranges::find(cuts_, OriginLinks::origin(document_, op)) == cuts_.end()) continue;
      for (const auto output : document_.outputs(op)) {
        if (!output || !evaluator.hasTensor(output)) continue;
        if (keep) (*keep)[output] = evaluator.tensor(output).clone();
        else if (const auto held = held_.find(output); held != held_.end()) evaluator.bind(output, held->second);
      }
    }
    double sum = 0;
    for (auto& [id, cotangent] : cotangentValues(analysis_)) {
      std::size_t i = 0;
      while (analysis_.joint.inputs[inputs.size() + i] != id) ++i;
      sum += innerProduct(cotangent.toTensor(), evaluator.tensor(analysis_.joint.outputs[i]));
    }
    return sum;
  }

  const Analysis& analysis_;
  const Document& document_;
  std::vector<BoundSymbolId> cuts_;  ///< of the computation
  std::map<ValueId, at::Tensor> held_;
  double atPoint_ = 0;
};

/// The gradient of one input against differences of the objective.
class InputCheck {
 public:
  using Verdict = GradientCheckRow::Verdict;
  InputCheck(const Objective& objective, ValueId input, const at::Tensor& gradient, const at::Tensor& point,
             GradientCheckRow& row)
      : objective_(objective), input_(input), gradient_(gradient), point_(point), row_(row) {}

  void run(std::size_t directions) {
    for (std::size_t k = 0; k < directions && row_.verdict == Verdict::right; ++k)
      along(at::randn(point_.sizes(), point_.options()));
  }

 private:
  struct Slopes {
    double before = 0, after = 0;  ///< to both sides
    double gap() const { return std::abs(after - before); }
    double middle() const { return (before + after) / 2; }
  };

  Slopes slopes(const at::Tensor& direction, double step) const {
    const auto here = objective_.atPoint();
    return {(here - objective_.at(input_, point_.sub(direction, step))) / step,
            (objective_.at(input_, point_.add(direction, step)) - here) / step};
  }

  /// A curve's slopes come together as the step becomes smaller, those at a kink do not.
  void along(const at::Tensor& direction) {
    constexpr double smaller = 16, clearly = 1e-3;
    const double step = 1e-6 * std::max(1.0, largest(point_));
    const auto found = slopes(direction, step);
    const double derivative = innerProduct(gradient_, direction);
    if (!std::isfinite(found.middle())) {
      row_.verdict = Verdict::unknown;
      row_.note = "the ops give NaN or infinities there";
      return;
    }
    const double scale =
        std::max({std::abs(found.middle()), std::abs(derivative), 1e-6 * gradient_.norm().item().toDouble(), 1e-12});
    double off = std::abs(found.middle() - derivative);
    const bool isRight = off <= GradientCheck::finiteTolerance * scale;
    if (found.gap() > clearly * scale || (!isRight && found.gap() >= off)) {
      const auto closer = slopes(direction, step / smaller);
      if (closer.gap() > found.gap() / 2) {
        row_.verdict = Verdict::atKink;
        row_.note =
            fmt::format("at a kink: between {:.6g} and {:.6g} in a random direction, the gradient gives {:.6g}",
                        std::min(closer.before, closer.after), std::max(closer.before, closer.after), derivative);
        return;
      }
      off = std::min(off, std::abs(closer.middle() - derivative) / smaller);
    }
    row_.finiteDifferences = std::max(row_.finiteDifferences, off / scale);
    if (row_.finiteDifferences > GradientCheck::finiteTolerance) row_.verdict = Verdict::wrong;
  }

  const Objective& objective_;
  ValueId input_;
  const at::Tensor &gradient_, &point_;
  GradientCheckRow& row_;
};

/// "as a constant: what torch.ops.aten.detach.default makes, model.py:12 in forward".
std::string cutNote(const Analysis& analysis, BoundSymbolId cut) {
  const auto& document = *analysis.document;
  const auto line = recordedLine(document, cut);
  return fmt::format("with what {} makes as a constant{}{}", document.opName(cut), line.empty() ? "" : ", ", line);
}

std::string whyNone(const Analysis& analysis, ValueId input) {
  const auto why = whyNoGradient(analysis, input);
  return why.stops.empty() ? "no gradient" : "no gradient: " + describe(*analysis.document, why.stops.front());
}

void addNote(GradientCheckRow& row, const std::string& note) {
  row.note += (row.note.empty() || note.empty() ? "" : "; ") + note;
}

GradientCheckRow checkInput(const Analysis& analysis, std::size_t input, const TensorMap& ours, const TensorMap& theirs,
                            const Objective& objective, std::size_t directions) {
  using Verdict = GradientCheckRow::Verdict;
  const auto& name = analysis.computation().inputs[input].name;
  const auto value = analysis.computation().trace.inputs[input];
  GradientCheckRow row{.input = name};
  const auto found = ours.find("in." + name), eager = theirs.find("in." + name);
  if (found == ours.end() || eager == theirs.end()) {
    const bool same =
        (found == ours.end() || isZero(found->second)) && (eager == theirs.end() || isZero(eager->second));
    row.note = same                  ? whyNone(analysis, value)
               : found == ours.end() ? "LibTorch has a gradient"
                                     : "LibTorch has no gradient";
    row.libTorch = same ? 0 : std::numeric_limits<double>::infinity();
    row.verdict = same ? Verdict::right : Verdict::wrong;
    return row;
  }
  const auto gradient = borrowTensor(found->second), other = borrowTensor(eager->second);
  const auto point = borrowTensor(analysis.request.inputs.at(name));
  row.libTorch = relativeDifference(gradient, other);
  if (!isFinite(gradient)) {
    const auto nan = at::isnan(gradient).sum().item().toLong();
    row.finiteDifferences = std::numeric_limits<double>::quiet_NaN();
    row.verdict = nan > 0 ? Verdict::wrong : Verdict::unknown;
    row.note = nan > 0 ? fmt::format("it has {} NaN{}", nan, isFinite(other) ? "" : ", as LibTorch's has")
                       : "it is infinite there";
    return row;
  }
  InputCheck(objective, value, gradient, point, row).run(directions);
  if (!(row.libTorch <= GradientCheck::libTorchTolerance)) row.verdict = Verdict::wrong;
  if (const auto cut = objective.cutBehind(value)) addNote(row, cutNote(analysis, cut));
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
  const Objective objective(*part);
  const auto& inputs = part->computation().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!part->document->value(inputs[i].value).requiresGrad) continue;
    progress.check();
    check.rows.push_back(checkInput(*part, i, ours, theirs, objective, check.directions));
    check.passed &= check.rows.back().verdict != GradientCheckRow::Verdict::wrong;
  }
  return check;
}

}  // namespace retrograd
