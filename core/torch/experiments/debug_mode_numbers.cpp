#include "core/torch/experiments/debug_mode_numbers.h"

#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/l1_norm.h"
#include "core/torch/tracing/interceptor.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/last_use.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

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
    const auto& name = op.operator_name();
    call.op = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
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
  DebugModeCall call;
  call.position = static_cast<std::int64_t>(position);
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
  DebugModeRun run;
  run.path = analysis.file.path;
  Evaluator evaluator(document, analysis.request.seed);
  evaluator.setLeftOut(analysis.leftOut);
  for (auto& bindings : {inputValues(analysis), cotangentValues(analysis)})
    for (const auto& [id, value] : bindings) evaluator.bind(id, value);
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
    for (auto id : lastUses.values(position)) {
      const auto storage = document.value(id).storage;
      if (!(storage && document.storage(storage).external)) evaluator.release(id);
    }
  }
  return run;
}

}  // namespace retrograd
