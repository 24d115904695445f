#include "core/torch/tracing/live_module.h"

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/version.h>

#include <chrono>

#include "core/torch/tracing/computation_recorder.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {
namespace {

/// The trace that this thread is making, if any.
struct LiveTrace {
  ComputationRecorder* recorder = nullptr;
  Document* document = nullptr;
};
thread_local LiveTrace liveTrace;
thread_local std::string modulePath;

void tellModule() {
  if (liveTrace.recorder)
    liveTrace.recorder->place({}, modulePath.empty() ? StringId() : liveTrace.document->intern(modulePath));
}

/// Makes `recorder` the one that scopes give their paths to; it sees the ops of this thread meanwhile.
class Recording {
 public:
  Recording(ComputationRecorder& recorder, Document& document)
      : outer_(std::exchange(liveTrace, {&recorder, &document})), observed_(recorder) {
    if (outer_.recorder) throw Error(ErrorCode::badUse, "a module is being traced on this thread already");
    tellModule();
  }
  ~Recording() { liveTrace = outer_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  LiveTrace outer_;
  AboveAutograd observed_;
};

void requireCpu(const at::Tensor& tensor, const std::string& name) {
  if (!tensor.is_cpu())
    throw Error(ErrorCode::badUse, fmt::format("it is on {}; models are traced on the CPU", tensor.device().str()),
                name);
}

/// Declares the module's tensors; one that was registered twice is one input with two names.
class ModuleInputs {
 public:
  ModuleInputs(ComputationRecorder& recorder, ModelFile& file) : recorder_(recorder), file_(file) {}

  void add(InputKind kind, const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    requireCpu(tensor, name);
    if (const auto [it, isNew] = first_.try_emplace(tensor.unsafeGetTensorImpl(), file_.computation.inputs.size());
        !isNew) {
      file_.computation.inputs[it->second].aliases.push_back(name);
      return;
    }
    InputSpec spec{
        .kind = kind, .target = name, .requiresGrad = kind == InputKind::parameter && tensor.requires_grad()};
    recorder_.addInput(spec, tensor, snapshot(tensor), false);
  }

 private:
  ComputationRecorder& recorder_;
  ModelFile& file_;
  std::unordered_map<const at::TensorImpl*, std::size_t> first_;
};

std::vector<at::Tensor> run(const LiveForward& forward, const std::vector<at::Tensor>& inputs,
                            ComputationRecorder& recorder, Document& document) {
  try {
    const Recording recording(recorder, document);
    return forward(inputs);
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& e) {
    throw Error(ErrorCode::execution, std::string("forward fails: ") + e.what_without_backtrace(),
                std::string(document.text(recorder.module())));
  }
}

}  // namespace

ModelFile traceModule(torch::nn::Module& module, const std::vector<at::Tensor>& inputs, const LiveForward& forward,
                      const LiveOptions& options, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  ModelFile file{.path = module.name(), .torchVersion = TORCH_VERSION, .document = std::make_shared<Document>()};
  ComputationRecorder recorder(file, {.emptyIsLiteral = true, .placeByTensors = true}, progress);
  ModuleInputs moduleInputs(recorder, file);
  for (const auto& parameter : module.named_parameters())
    moduleInputs.add(InputKind::parameter, parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers()) moduleInputs.add(InputKind::buffer, buffer.key(), buffer.value());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    InputSpec spec{.name = i < options.inputNames.size() ? options.inputNames[i] : fmt::format("input_{}", i)};
    requireCpu(inputs[i], "input " + spec.name);
    spec.requiresGrad = inputs[i].is_floating_point() || inputs[i].is_complex();
    recorder.addInput(spec, inputs[i], snapshot(inputs[i]), false);
    file.inputSource[spec.name] = "given";
  }
  const KeepGenerator keep(options.seed);
  const auto outputs = run(forward, inputs, recorder, *file.document);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && !recorder.knows(outputs[i]))
      file.problems.push_back({Problem::Severity::warning,
                               "no op that was seen has made it (another thread?): it is taken for a constant",
                               fmt::format("output {}", i), -1});
    recorder.addOutput(outputs[i], "");
  }
  recorder.finish("module", module.name(),
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return file;
}

ModuleScope::ModuleScope(std::string_view path) : outer_(modulePath.size()) {
  if (!modulePath.empty()) modulePath += '.';
  modulePath += path;
  tellModule();
}

ModuleScope::~ModuleScope() {
  modulePath.resize(outer_);
  tellModule();
}

}  // namespace retrograd
