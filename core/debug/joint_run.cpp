#include "core/debug/joint_run.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <map>

#include "core/debug/eager.h"
#include "core/debug/higher_order.h"
#include "core/execution/device.h"
#include "core/execution/evaluator.h"
#include "core/execution/placement.h"
#include "core/debug/bindings.h"
#include "core/debug/results.h"
#include "core/tracing/generator.h"

namespace retrograd {
namespace {

/// A leaf of its own memory: the eager run writes in place, and the file's weights must not change.
at::Tensor ownCopy(const at::Tensor& tensor) {
  if (!tensor.is_non_overlapping_and_dense()) return tensor.clone();
  auto copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
  copy.copy_(tensor);
  return copy;
}

/// The default generators that a run draws from, seeded; as they were when the scope ends.
class Seeded {
 public:
  Seeded(std::uint64_t seed, Device device) {
    setGeneratorState(seededState(seed));
    if (device.type != Device::Type::cuda) return;
    requireDevice(device);
    const auto gpu = toTorchDevice(device);
    gpu_.emplace(gpu);
    setGeneratorState(seededState(seed, gpu), gpu);
  }

 private:
  KeepGenerator cpu_;
  std::optional<KeepGenerator> gpu_;
};

/// One eager forward with its leaves.
struct EagerRun {
  explicit EagerRun(const Analysis& a) : analysis(a), interpreter(a) {
    std::map<std::string, at::Tensor> tied;
    const auto& computation = analysis.computation();
    for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
      const auto& input = computation.inputs[i];
      const auto id = computation.trace.inputs[i];
      leaves.emplace_back();
      if (!id) continue;
      if (auto number = analysis.numbers.find(input.name); input.kind == InputKind::user && number != analysis.numbers.end()) {
        interpreter.bind(id, toIValue(number->second, c10::AnyType::get(), {}));
        continue;
      }
      auto tensor = inputTensor(analysis, i);
      if (!tensor.defined()) {
        interpreter.bind(id, {});
        continue;
      }
      auto& shared = tied[input.storageKey.empty() ? "#" + std::to_string(i) : input.storageKey];
      if (!shared.defined() || shared.sizes() != tensor.sizes()) {
        shared = ownCopy(tensor);
        if (analysis.document->value(id).requiresGrad) shared.requires_grad_(true);
        if (shared.requires_grad()) leaves.back() = shared;  // asked now: an in-place write can make a buffer require a gradient
      }
      interpreter.bind(id, shared);
    }
  }

  void forward() {
    at::AutoGradMode gradMode(true);
    const auto& computation = analysis.computation();
    interpreter.run(computation.trace.ops);
    for (const auto& output : computation.outputs) outputs.push_back(output.value ? interpreter.value(output.value) : c10::IValue());
  }

  /// Gradients by leaf, undefined where there is none. With `createGraph` they can be differentiated, and the cotangents too.
  std::vector<at::Tensor> backward(bool createGraph = false) {
    std::vector<at::Tensor> roots, cotangents, wanted;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto it = analysis.cotangents.find(userOutputPosition(analysis.computation(), i));
      if (it == analysis.cotangents.end() || !outputs[i].isTensor() || !outputs[i].toTensor().requires_grad()) continue;
      roots.push_back(outputs[i].toTensor());
      cotangents.push_back(Placement().place(it->second, toDevice(outputs[i].toTensor().device())));
      if (createGraph) cotangents.back().requires_grad_(true);
      cotangentLeaves[i] = cotangents.back();
    }
    for (const auto& leaf : leaves)
      if (leaf.defined()) wanted.push_back(leaf);
    std::vector<at::Tensor> gradients(leaves.size());
    if (roots.empty() || wanted.empty()) return gradients;
    const auto found = torch::autograd::grad(roots, wanted, cotangents, /*retain_graph=*/createGraph, createGraph, /*allow_unused=*/true);
    for (std::size_t i = 0, k = 0; i < leaves.size(); ++i)
      if (leaves[i].defined()) gradients[i] = found[k++];
    return gradients;
  }

  const Analysis& analysis;
  EagerInterpreter interpreter;
  std::vector<at::Tensor> leaves;
  std::vector<c10::IValue> outputs;
  std::map<std::size_t, at::Tensor> cotangentLeaves;  // by output, those that were used
};

/// Gradients of the first derivative's outputs and gradients, by input of `second`.
RunResult differentiateTwice(EagerRun& run, const Analysis& second) {
  const auto& first = run.analysis;
  const auto gradients = run.backward(true);
  std::vector<at::Tensor> results;  // as second's user outputs
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    if (!userOutputPosition(first.computation(), i).empty()) results.push_back(run.outputs[i].isTensor() ? run.outputs[i].toTensor() : at::Tensor());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (first.joint.outputs.at(first.joint.resultCount + i)) results.push_back(gradients[i]);

  std::vector<at::Tensor> roots, cotangents, wanted;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto it = second.cotangents.find(std::to_string(i));
    if (it == second.cotangents.end() || !results[i].defined() || !results[i].requires_grad()) continue;
    roots.push_back(results[i]);
    cotangents.push_back(Placement().place(it->second, toDevice(results[i].device())));
  }
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves = run.leaves;
  for (std::size_t i = 0; i < first.computation().inputs.size(); ++i) names.push_back(resultKey(first.computation().inputs[i], "p."));
  for (const auto& [output, leaf] : run.cotangentLeaves) {
    leaves.push_back(leaf);
    names.push_back("in." + first.document->displayName(first.joint.inputs.at(first.computation().inputs.size() + output)));
  }
  for (const auto& leaf : leaves)
    if (leaf.defined()) wanted.push_back(leaf);

  RunResult result;
  for (const auto& tensor : results) result.outputs.push_back(tensor.defined() ? std::optional(copyOut(tensor)) : std::nullopt);
  if (roots.empty() || wanted.empty()) return result;
  const auto found = torch::autograd::grad(roots, wanted, cotangents, /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  for (std::size_t i = 0, k = 0; i < leaves.size(); ++i) {
    if (!leaves[i].defined()) continue;
    if (found[k].defined()) result.gradients[names[i]] = copyOut(found[k]);
    ++k;
  }
  return result;
}

}  // namespace

RunResult runJoint(const Analysis& analysis) {
  // No release, no history: the whole joint in one evaluator.
  Evaluator evaluator(*analysis.document, analysis.seed);
  for (auto& [id, value] : inputBindings(analysis)) evaluator.bind(id, value);
  for (auto& [id, value] : cotangentBindings(analysis)) evaluator.bind(id, value);
  for (auto op : analysis.joint.ops) evaluator.run(op);
  return {resultsOf(analysis, evaluator), gradientsOf(analysis, evaluator), mutatedOf(analysis, evaluator)};
}

RunResult runEager(const Analysis& analysis) {
  const Seeded seeded(analysis.seed, analysis.device);
  EagerRun run(analysis);
  try {
    run.forward();
    const auto gradients = run.backward();
    RunResult result;
    const auto& computation = analysis.computation();
    for (std::size_t i = 0; i < computation.outputs.size(); ++i)
      if (!userOutputPosition(computation, i).empty())
        result.outputs.push_back(run.outputs[i].isTensor() && run.outputs[i].toTensor().defined() ? std::optional(copyOut(run.outputs[i].toTensor())) : std::nullopt);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto& input = computation.inputs[i];
      if (gradients[i].defined()) result.gradients[resultKey(input, "p.")] = copyOut(gradients[i]);
    }
    return result;
  } catch (const c10::Error& e) {
    throw Error(ErrorCode::execution, std::string("LibTorch's own run fails: ") + e.what_without_backtrace(), analysis.file.path);
  }
}

RunResult runEagerTwice(const Analysis& second) {
  if (!second.differentiated) throw Error(ErrorCode::badUse, "it is no second derivative", second.file.path);
  const auto& first = *second.differentiated;
  const Seeded seeded(first.seed, first.device);
  try {
    EagerRun run(first);
    run.forward();
    return differentiateTwice(run, second);
  } catch (const c10::Error& e) {
    throw Error(ErrorCode::execution, std::string("LibTorch's own run fails: ") + e.what_without_backtrace(), first.file.path);
  }
}

EagerTimes timeEager(const Analysis& analysis) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const Seeded seeded(analysis.seed, analysis.device);
  EagerRun run(analysis);
  EagerTimes times;
  synchronise(analysis.device);
  auto start = Clock::now();
  run.forward();
  synchronise(analysis.device);
  times.forwardSeconds = since(start);
  start = Clock::now();
  run.backward();
  synchronise(analysis.device);
  times.backwardSeconds = since(start);
  return times;
}

}  // namespace retrograd
