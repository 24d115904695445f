#include "tests/views/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>

namespace retrograd::views {
namespace {

/// Writes a document op by op.
class Builder {
 public:
  explicit Builder(Document& document) : document_(document) {}

  ValueId tensor(const std::string& name, std::vector<std::int64_t> sizes, ValueKind kind) {
    TensorMeta meta;
    meta.strides = contiguousStrides(sizes);
    meta.sizes = std::move(sizes);
    Value value;
    if (!name.empty()) value.name = document_.intern(name);
    value.meta = document_.internMeta(meta);
    value.storage =
        document_.addStorage(meta.bytes(), {}, kind != ValueKind::activation && kind != ValueKind::gradient);
    value.kind = kind;
    return document_.addValue(value);
  }

  /// An op with one output; operands are all its arguments, then `literals`.
  BoundSymbolId op(const std::string& symbol, std::vector<ValueId> operands, ValueId output, BoundSymbol bound = {},
                   std::vector<Argument> literals = {}) {
    Symbol s;
    s.name = symbol;
    s.known = true;
    CallPattern pattern;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      pattern.arguments.push_back(Argument::ofOperand(static_cast<std::int64_t>(i)));
      s.arguments.push_back({i == 0 ? "self" : "other" + std::to_string(i), "Tensor", false, {}, -1, false});
    }
    s.schema = symbol + "(Tensor self, ...) -> Tensor";
    pattern.operandCount = static_cast<std::int32_t>(operands.size());
    for (auto& literal : literals) pattern.arguments.push_back(literal);
    bound.symbol = document_.internSymbol(s);
    bound.pattern = document_.internPattern(pattern);
    const std::vector outputs{output};
    const auto id = document_.addBoundSymbol(bound, operands, outputs);
    document_.value(output).producer = id;
    return id;
  }

  ValueId result(std::vector<std::int64_t> sizes, ValueKind kind = ValueKind::activation) {
    return tensor({}, std::move(sizes), kind);
  }

 private:
  Document& document_;
};

BoundSymbol derivedFrom(BoundSymbolId operation, Role role, StringId module, int operand = -1) {
  BoundSymbol bound;
  bound.parent = operation;
  bound.module = module;
  bound.origin.op = operation;
  bound.origin.role = role;
  bound.origin.operand = static_cast<std::int16_t>(operand);
  return bound;
}

struct Layer {
  BoundSymbolId linear, relu;
  ValueId input, weight, bias, weightT, hidden, output;
  ValueId computed;  ///< the output in the computation
  StringId module;
};

/// The computation and the forward of one layer; `computedInput` is what flows into it in the computation.
Layer addLayer(Builder& build, Document& document, Analysis& analysis, int number, ValueId input,
               ValueId computedInput) {
  const auto index = std::to_string(number);
  Layer layer;
  layer.input = input;
  layer.module = document.intern("layers." + index + ".linear");
  layer.weight = build.tensor("p_layers_" + index + "_weight", {10, 10}, ValueKind::parameter);
  const auto bias = layer.bias = build.tensor("p_layers_" + index + "_bias", {10}, ValueKind::parameter);
  auto& computation = analysis.file.computation;
  for (auto value : {layer.weight, bias}) {
    computation.trace.inputs.push_back(value);
    document.value(value).requiresGrad = true;
    InputSpec spec;
    spec.kind = InputKind::parameter;
    spec.name = document.displayName(value);
    spec.target = "layers." + index + ".linear." + (value == bias ? "bias" : "weight");
    spec.value = value;
    computation.inputs.push_back(spec);
  }
  BoundSymbol bound;
  bound.module = layer.module;
  bound.name = document.intern(number ? "linear_" + index : "linear");
  bound.source = document.internSource({{"train.py", 12, "forward", "return self.layers(x)"},
                                        {"model.py", 31 + number, "forward", "x = relu(self.linear(x))"}});
  const auto linearOut = build.tensor(number ? "linear_" + index : "linear", {8, 10}, ValueKind::activation);
  layer.linear = build.op("aten.linear.default", {computedInput, layer.weight, bias}, linearOut, bound);
  bound.module = document.intern("layers." + index);
  bound.name = document.intern(number ? "relu_" + index : "relu");
  const auto reluOut = build.tensor(number ? "relu_" + index : "relu", {8, 10}, ValueKind::activation);
  layer.relu = build.op("aten.relu.default", {linearOut}, reluOut, bound);
  layer.computed = reluOut;
  document.value(reluOut).requiresGrad = true;
  computation.trace.ops.insert(computation.trace.ops.end(), {layer.linear, layer.relu});

  layer.weightT = build.result({10, 10});
  layer.hidden = build.result({8, 10});
  layer.output = build.result({8, 10});
  const auto fromLinear = derivedFrom(layer.linear, Role::forward, layer.module);
  analysis.forward.ops.push_back(build.op("aten.t.default", {layer.weight}, layer.weightT, fromLinear));
  analysis.forward.ops.push_back(
      build.op("aten.addmm.default", {bias, input, layer.weightT}, layer.hidden, fromLinear));
  analysis.forward.ops.push_back(build.op("aten.relu.default", {layer.hidden}, layer.output,
                                          derivedFrom(layer.relu, Role::forward, document.intern("layers." + index))));
  return layer;
}

/// The backward of one layer; returns the gradient of its input and notes those of its parameters.
ValueId addBackward(Builder& build, Document& document, Analysis& analysis, const Layer& layer, ValueId gradient,
                    std::map<ValueId, ValueId>& gradients) {
  auto& ops = analysis.backward.ops;
  const auto add = [&](BoundSymbolId op) { ops.push_back(op); };
  const auto reluModule = document.boundSymbol(layer.relu).module;
  const auto masked = build.result({8, 10}, ValueKind::gradient);
  add(build.op("aten.threshold_backward.default", {gradient, layer.output}, masked,
               derivedFrom(layer.relu, Role::gradient, reluModule, 0), {Argument::ofInt(0)}));
  const auto toInput = build.result({8, 10}, ValueKind::gradient);
  const auto plain = build.result({10, 10}, ValueKind::gradient);
  add(build.op("aten.t.default", {layer.weightT}, plain, derivedFrom(layer.linear, Role::gradient, layer.module, 0)));
  add(build.op("aten.mm.default", {masked, plain}, toInput,
               derivedFrom(layer.linear, Role::gradient, layer.module, 0)));
  const auto transposed = build.result({10, 8}, ValueKind::gradient);
  add(build.op("aten.t.default", {masked}, transposed, derivedFrom(layer.linear, Role::gradient, layer.module, 1)));
  const auto toWeight = gradients[layer.weight] = build.result({10, 10}, ValueKind::gradient);
  const auto toBias = gradients[layer.bias] = build.result({10}, ValueKind::gradient);
  add(build.op("aten.mm.default", {transposed, layer.input}, toWeight,
               derivedFrom(layer.linear, Role::gradient, layer.module, 1)));
  add(build.op("aten.sum.dim_IntList", {masked}, toBias, derivedFrom(layer.linear, Role::gradient, layer.module, 2),
               {Argument::ofList({Argument::ofInt(0)})}));
  return toInput;
}

}  // namespace

std::shared_ptr<const Analysis> syntheticAnalysis(int layers) {
  auto analysis = std::make_shared<Analysis>();
  auto document = std::make_shared<Document>();
  Builder build(*document);
  auto& computation = analysis->file.computation;
  computation.trace.name = "computation";
  const auto x = build.tensor("x", {8, 10}, ValueKind::input);
  computation.trace.inputs.push_back(x);
  InputSpec spec;
  spec.name = "x";
  spec.value = x;
  computation.inputs.push_back(spec);
  std::vector<Layer> made;
  auto value = x, computed = x;
  for (int i = 0; i < layers; ++i) {
    made.push_back(addLayer(build, *document, *analysis, i, value, computed));
    value = made.back().output;
    computed = made.back().computed;
  }
  analysis->forward.kind = TraceKind::forward;
  analysis->forward.outputs = {value};
  analysis->forward.resultCount = 1;
  auto gradient = build.tensor("cotangent", {8, 10}, ValueKind::cotangent);
  const auto cotangent = gradient;
  analysis->backward.kind = TraceKind::backward;
  std::map<ValueId, ValueId> gradients;
  for (auto layer = made.rbegin(); layer != made.rend(); ++layer) {
    analysis->forward.outputs.push_back(layer->output);
    analysis->backward.inputs.push_back(layer->output);
    gradient = addBackward(build, *document, *analysis, *layer, gradient, gradients);
  }
  analysis->backward.savedCount = analysis->backward.inputs.size();
  analysis->backward.inputs.push_back(cotangent);
  if (!made.empty()) {
    computation.trace.outputs = {document->outputs(made.back().relu)[0]};
    OutputSpec output;
    output.value = computation.trace.outputs.front();
    computation.outputs.push_back(output);
  }
  analysis->joint.inputs = computation.trace.inputs;
  analysis->joint.inputs.push_back(cotangent);
  analysis->joint.outputs = {value};
  analysis->joint.resultCount = 1;
  for (auto input : computation.trace.inputs)
    analysis->joint.outputs.push_back(gradients.contains(input) ? gradients.at(input) : ValueId());
  analysis->joint.kind = TraceKind::joint;
  analysis->joint.ops = analysis->forward.ops;
  analysis->joint.forwardCount = analysis->forward.ops.size();
  analysis->joint.ops.insert(analysis->joint.ops.end(), analysis->backward.ops.begin(), analysis->backward.ops.end());
  analysis->links = OriginLinks(*document, analysis->joint);
  analysis->file.document = document;
  analysis->document = document;
  analysis->inputSource = {"x: drawn from seed 0"};
  analysis->problems = {{Problem::Severity::warning, "the mode of the model is not in the file", "linear",
                         made.empty() ? -1 : made[0].linear.index}};
  return analysis;
}

BoundSymbolId FakeRunner::opAt(std::size_t position) const {
  const auto& forward = analysis_->forward.ops;
  return position < forward.size() ? forward[position] : analysis_->backward.ops[position - forward.size()];
}

StopReason FakeRunner::runTo(std::size_t position, const Progress& progress) {
  progress.check();
  position_ = position;
  return StopReason::cursor;
}

StopReason FakeRunner::continueTo(std::size_t position, const Progress& progress) {
  const bool forward = position > position_;
  while (position_ != position) {
    progress.at(analysis_->document->opName(opAt(forward ? position_ : position_ - 1)),
                static_cast<double>(position_) / static_cast<double>(size()));
    if (forward) std::this_thread::sleep_for(opTime);
    position_ += forward ? 1 : std::size_t(-1);
    if (position_ < size() && breakpoints_.stopBetween({}, opAt(position_), [](const Breakpoint&) { return false; }))
      return StopReason::breakpoint;
    if (forward && breakOnBad_ && static_cast<std::int64_t>(position_) == badAt) return StopReason::badNumber;
  }
  return position == size() ? StopReason::end : position == 0 ? StopReason::start : StopReason::step;
}

std::shared_ptr<const Moment> FakeRunner::at(BoundSymbolId op, const Progress& progress) {
  for (int made = 0; made < 100 && opTime.count() > 0; ++made) {
    progress.at(analysis_->document->opName(op), made / 100.0);
    std::this_thread::sleep_for(opTime);
  }
  return Runner::at(op, progress);
}

ValueState FakeRunner::state(ValueId value) const {
  ValueState state;
  const auto& entry = analysis_->document->value(value);
  state.meta = analysis_->document->meta(entry.meta);
  state.present = true;
  if (!entry.producer) return state;
  const auto& forward = analysis_->forward.ops;
  const auto& backward = analysis_->backward.ops;
  const auto inForward = std::find(forward.begin(), forward.end(), entry.producer);
  const auto made =
      inForward != forward.end()
          ? static_cast<std::size_t>(inForward - forward.begin())
          : forward.size() + static_cast<std::size_t>(std::find(backward.begin(), backward.end(), entry.producer) -
                                                      backward.begin());
  state.present = made < position_;
  if (!state.present) state.reason = "not computed yet";
  return state;
}

TensorData FakeRunner::contents(ValueId value) const {
  if (!state(value).present) throw Error(ErrorCode::badUse, "not computed yet");
  TensorData data;
  data.meta = analysis_->document->meta(value);
  auto numbers = std::make_shared<std::vector<float>>(static_cast<std::size_t>(data.meta.elements()));
  for (std::size_t i = 0; i < numbers->size(); ++i)
    (*numbers)[i] = filled_.contains(value)
                        ? static_cast<float>(filled_.at(value))
                        : std::sin(static_cast<float>(i * 7 + static_cast<std::size_t>(value.index)) * 0.37F) * 1.7F;
  data.data = reinterpret_cast<const std::byte*>(numbers->data());
  data.bytes = numbers->size() * sizeof(float);
  data.owner = numbers;
  return data;
}

TensorStatistics FakeRunner::statistics(ValueId value) const {
  const auto data = contents(value);
  const auto* numbers = reinterpret_cast<const float*>(data.data);
  TensorStatistics s;
  s.elements = data.meta.elements();
  s.min = s.max = s.elements ? static_cast<double>(numbers[0]) : 0;
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < s.elements; ++i) {
    const double n = static_cast<double>(numbers[i]);
    s.min = std::min(s.min, n);
    s.max = std::max(s.max, n);
    sum += n;
    squares += n * n;
  }
  s.mean = sum / static_cast<double>(s.elements);
  s.norm = std::sqrt(squares);
  s.standardDeviation = std::sqrt(squares / static_cast<double>(s.elements) - s.mean * s.mean);
  return s;
}

std::vector<std::int64_t> FakeRunner::histogram(ValueId value, int bins) const {
  const auto data = contents(value);
  const auto s = statistics(value);
  const auto* numbers = reinterpret_cast<const float*>(data.data);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins), 0);
  for (std::int64_t i = 0; i < s.elements; ++i) {
    const auto cell = s.max > s.min ? (static_cast<double>(numbers[i]) - s.min) / (s.max - s.min) * bins : 0;
    ++counts[std::min(static_cast<std::size_t>(cell), counts.size() - 1)];
  }
  return counts;
}

std::shared_ptr<const Analysis> FakeEngine::open(const OpenRequest& request, const Progress& progress,
                                                 const OnRead& onRead) {
  asked.push_back(request.device);
  if (request.path.starts_with("block"))
    for (;;) {
      progress.at("reading weights", 0.4);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  const auto at = request.path.find("synthetic");
  if (at == std::string::npos) throw Error(ErrorCode::badInput, "not a torch.export archive", request.path);
  const auto digits = request.path.find_first_of("0123456789", at);
  auto analysis = syntheticAnalysis(digits == std::string::npos ? 3 : std::stoi(request.path.substr(digits)));
  if (onRead) onRead(analysis->file);
  return analysis;
}

std::unique_ptr<Runner> FakeEngine::run(std::shared_ptr<const Analysis> analysis) {
  auto runner = std::make_unique<FakeRunner>(std::move(analysis));
  runner->badAt = badAt;
  runner->opTime = opTime;
  return runner;
}

RunRecord FakeEngine::record(const Analysis& analysis, const std::map<ValueId, double>&, const Progress& progress) {
  RunRecord record;
  record.values.resize(analysis.document->valueCount());
  for (auto& value : record.values) value = {true, {}};
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
    progress.check();
    for (auto output : analysis.document->outputs(analysis.joint.ops[i])) {
      auto& statistics = record.values[output].statistics;
      statistics.elements = 80;
      if (badAt >= 0 && static_cast<std::int64_t>(i) + 1 >= badAt) statistics.nan = 80;
    }
  }
  return record;
}

WhatIf FakeEngine::whatIf(const Analysis& analysis, const PartitionOptions& partition, const std::vector<OpMeasure>&,
                          const Progress&) {
  WhatIf result;
  const auto figures = [](const PartitionOptions& options) {
    PartitionFigures f;
    f.savedBytes = 3200 - 320 * static_cast<std::int64_t>(options.recompute.size());
    f.peakBytes = 2 * f.savedBytes;
    f.recomputedOps = options.recompute.size();
    return f;
  };
  result.before = figures(analysis.request.partition);
  result.after = figures(partition);
  result.extraSeconds = 1e-5 * static_cast<double>(partition.recompute.size());
  auto other = std::make_shared<Analysis>(analysis);
  other->request.partition = partition;
  result.analysis = other;
  return result;
}

GradientCheck FakeEngine::checkGradients(const Analysis& analysis, const std::vector<BoundSymbolId>& ops,
                                         const Progress& progress) {
  progress.check();
  GradientCheck check;
  check.directions = 3;
  check.passed = ops.size() <= 3;
  check.rows.push_back({analysis.document->displayName(analysis.document->operands(ops.at(0))[0]),
                        check.passed ? 1e-9 : 0.5,
                        0,
                        {},
                        check.passed ? GradientCheckRow::Verdict::right : GradientCheckRow::Verdict::wrong});
  return check;
}

AllocatorPeak FakeEngine::measureMemory(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  progress.check();
  if (analysis->joint.ops.size() < 5) throw Error(ErrorCode::execution, "too few ops");
  return {5000, 2, 4000, 600, 4};
}

RunComparison FakeEngine::compare(const Analysis& analysis, const Counterpart& counterpart, double tolerance,
                                  const Progress& progress) {
  compared.push_back(counterpart);
  if (!counterpart.path.empty()) throw Error(ErrorCode::badInput, "no such file", counterpart.path);
  RunComparison comparison;
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
    progress.at("comparing", static_cast<double>(i) / static_cast<double>(analysis.joint.ops.size()));
    if (opTime.count() > 0) std::this_thread::sleep_for(opTime);
    RunDifference row;
    row.opA = row.opB = analysis.joint.ops[i];
    row.valueA = row.valueB = analysis.document->outputs(row.opA)[0];
    row.relative = counterpart.precision && i >= 5 ? 0.25 : 0;
    comparison.largest = std::max(comparison.largest, row.relative);
    if (!comparison.firstDivergence && row.relative > tolerance) comparison.firstDivergence = i;
    comparison.rows.push_back(row);
  }
  return comparison;
}

}  // namespace retrograd::views
