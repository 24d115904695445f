#include "core/torch/torchscript/trace_torchscript.h"

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <map>

#include "core/torch/torchscript/script_inputs.h"
#include "core/torch/torchscript/script_interpreter.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {
namespace {

/// A tensor of the module as an input of the computation; a tied one is the input it was met as first.
class ModuleInputs {
 public:
  ModuleInputs(ComputationRecorder& recorder, ModelFile& file) : recorder_(recorder), file_(file) {}

  void add(const ScriptTensor& tensor) {
    if (tensor.kind == ScriptTensor::Kind::attribute)
      return recorder_.offerConstant(tensor.name, tensor.tensor, tensor.data);
    const bool isParameter = tensor.kind == ScriptTensor::Kind::parameter;
    const auto key = std::make_pair(tensor.data.data, isParameter);
    for (auto [it, end] = first_.equal_range(key); it != end && tensor.data.data; ++it) {
      auto& input = file_.computation.inputs[it->second];
      if (!(meta(input) == tensor.data.meta)) continue;
      input.aliases.push_back(tensor.name);
      return recorder_.addAlias(input.value, tensor.tensor);
    }
    first_.emplace(key, file_.computation.inputs.size());
    InputSpec spec;
    spec.kind = isParameter ? InputKind::parameter : InputKind::buffer;
    spec.target = tensor.name;
    spec.requiresGrad = isParameter && tensor.tensor.requires_grad();
    recorder_.addInput(spec, tensor.tensor, tensor.data, true);
  }

 private:
  const TensorMeta& meta(const InputSpec& input) const { return file_.weights.at(input.target).meta; }

  ComputationRecorder& recorder_;
  ModelFile& file_;
  std::multimap<std::pair<const std::byte*, bool>, std::size_t> first_;
};

/// Buffers and parameters that forward has given another tensor.
void addMutations(const ScriptModule& module, ComputationRecorder& recorder) {
  for (const auto& tensor : module.tensors()) {
    if (tensor.kind == ScriptTensor::Kind::attribute) continue;
    const auto now = module.current(tensor);
    if (!now.defined() || now.is_same(tensor.tensor)) continue;
    recorder.addMutation(
        tensor.kind == ScriptTensor::Kind::buffer ? OutputKind::bufferMutation : OutputKind::parameterMutation,
        tensor.name, now);
  }
}

}  // namespace

void checkTorchScript(const std::shared_ptr<const Archive>& archive) { ScriptModule module(archive); }

ModelFile traceTorchScript(const std::shared_ptr<const Archive>& archive, const TraceInputs& inputs,
                           const Progress& progress) {
  progress.at("compiling", 0.1);
  ScriptModule module(archive);
  progress.at("tracing", 0.2);
  const auto start = std::chrono::steady_clock::now();
  ModelFile file;
  file.path = archive->place();
  file.document = std::make_shared<Document>();
  ComputationRecorder recorder(file, {}, progress);
  ModuleInputs moduleInputs(recorder, file);
  for (const auto& tensor : module.tensors()) moduleInputs.add(tensor);
  auto arguments = forwardArguments(module, inputs, recorder, file);
  KeepGenerator keep;
  setGeneratorState(seededState(inputs.seed));
  at::AutoGradMode gradMode(true);  // what the file asks of it (is_grad_enabled, requires_grad) is as in training
  c10::IValue result;
  {
    AboveAutograd observed(recorder);
    result = ScriptInterpreter(module, recorder, *file.document, progress).call(module.forward(), std::move(arguments));
  }
  forEachLeaf(result, "", [&](const c10::IValue& leaf, const std::string& path) { recorder.addOutput(leaf, path); });
  addMutations(module, recorder);
  PassRecord pass;
  pass.pass = "Trace";
  pass.parameters.emplace_back("torchscript", "file format " + std::to_string(module.parts().version));
  pass.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  recorder.finish(std::move(pass));
  return file;
}

}  // namespace retrograd
