#include "core/torch/experiments/debug_mode_numbers.h"

#include <ATen/ops/norm.h>

#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/tracing/interceptor.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/last_use.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

/// The L1 norm as PyTorch's DebugMode records it: of the elements in double precision (complex ones by absolute value),
/// after integers and booleans were rounded to float32. NaN and infinities stay. On the device that the tensor is on.
double l1Norm(const at::Tensor& tensor) {
  auto t = tensor.detach();
  if (t.layout() != at::kStrided) t = t.to_dense();
  if (!t.is_floating_point() && !t.is_complex()) t = t.to(at::kFloat);
  t = t.contiguous();
  return at::norm(t.to(t.is_complex() ? at::kComplexDouble : at::kDouble), 1).abs().item().toDouble();
}

DebugModeTensor described(const at::Tensor& tensor) {
  DebugModeTensor result;
  const auto text = typeComment(metaOf(tensor));
  result.type = text.substr(text.find(' ') + 1);
  result.norm = l1Norm(tensor);
  result.hasNorm = true;
  return result;
}

void addTensors(const c10::IValue& value, std::vector<DebugModeTensor>& tensors) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) tensors.push_back(described(value.toTensor()));
  } else if (value.isList()) {
    for (const auto& item : value.toListRef()) addTensors(item, tensors);
  } else if (value.isTuple()) {
    for (const auto& item : value.toTupleRef().elements()) addTensors(item, tensors);
  }
}

/// Takes down each op that is dispatched below Autograd.
class NormRecorder final : public OpHandler {
 public:
  explicit NormRecorder(DebugModeRun& run) : run_(run) {}

  /// What the next calls have in common.
  void begin(DebugModeCall common) { common_ = std::move(common); }

  void handle(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
    BelowInterception below;
    auto call = common_;
    call.op = c10::toString(op.operator_name());
    const auto arguments = op.schema().arguments().size(), before = stack->size() - arguments;
    for (std::size_t i = before; i < stack->size(); ++i) addTensors((*stack)[i], call.inputs);
    op.callBoxed(stack);
    for (std::size_t i = before; i < stack->size(); ++i) addTensors((*stack)[i], call.outputs);
    run_.calls.push_back(std::move(call));
  }

 private:
  DebugModeRun& run_;
  DebugModeCall common_;
};

DebugModeCall callAt(const Analysis& analysis, std::size_t position) {
  const auto& document = *analysis.document;
  const auto& bound = document.boundSymbol(analysis.joint.ops[position]);
  DebugModeCall call{.position = static_cast<std::int64_t>(position)};
  call.backward = bound.origin.role != Role::forward && bound.origin.role != Role::none;
  call.module = std::string(document.text(bound.module));
  if (const auto* frame = bound.source ? shownFrame(document.source(bound.source)) : nullptr)
    call.line = frame->file.substr(frame->file.rfind('/') + 1) + ":" + std::to_string(frame->line) +
                (frame->function.empty() ? "" : " in " + frame->function);
  return call;
}

}  // namespace

DebugModeRun debugModeNumbers(const Analysis& analysis, const Progress& progress) {
  const RunThreads threads(0);
  const auto& document = *analysis.document;
  const auto& ops = analysis.joint.ops;
  DebugModeRun run{.path = analysis.file.path};
  auto evaluator = evaluatorOf(analysis, startValues(analysis));
  const LastUses lastUses(document, analysis.joint);
  NormRecorder recorder(run);
  for (std::size_t position = 0; position < ops.size(); ++position) {
    progress.check();
    progress.at(document.opName(ops[position]), static_cast<double>(position) / static_cast<double>(ops.size()));
    recorder.begin(callAt(analysis, position));
    {
      const Interception interception(recorder);
      evaluator.run(ops[position]);
    }
    evaluator.releaseOwn(lastUses.values(position));
  }
  return run;
}

}  // namespace retrograd
