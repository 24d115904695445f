#include "core/torch/analysis/joint_run.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "core/base/id_vector.h"
#include "core/base/out_of_memory.h"
#include "core/torch/analysis/eager.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/results.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/placement.h"
#include "core/torch/tracing/generator.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/effects.h"
#include "core/trace/implied.h"
#include "core/trace/last_use.h"

namespace retrograd {
namespace {

/// Each element one rounding step off, up or down, as another order of the sums that made the gradient leaves it. Half
/// floats stay as they are.
at::Tensor roundedOtherwise(const at::Tensor& gradient, double seed) {
  const auto type = c10::toRealValueType(gradient.scalar_type());
  if (gradient.layout() != at::kStrided || (type != at::kFloat && type != at::kDouble)) return gradient;
  const double step =
      type == at::kFloat ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const auto turns =
      at::arange(gradient.numel(), gradient.options().dtype(at::kDouble)).add_(seed).mul_(2.3).sin_().sign_();
  return gradient.mul(turns.mul_(step).add_(1).view(gradient.sizes()).to(type));
}

/// Rounds each gradient that arrives at the result of an op otherwise.
void roundGradients(EagerInterpreter& interpreter, double seed) {
  interpreter.onTensor([seed](const at::Tensor& made) mutable {
    seed += 1;
    try {
      if (!made.requires_grad() || made.is_leaf()) return;
      made.register_hook([seed](const at::Tensor& gradient) {
        return gradient.defined() ? roundedOtherwise(gradient, seed) : gradient;
      });
    } catch (const c10::Error&) {
      // One of several views of memory that was written since: eager lets nobody ask for its history.
    }
  });
}

/// The default generators that a run draws from, seeded; as they were when the scope ends.
class Seeded {
 public:
  Seeded(std::uint64_t seed, Device device) : cpu_(seed) {
    if (device.type != Device::Type::cuda) return;
    requireDevice(device);
    gpu_.emplace(seed, toTorchDevice(device));
  }

 private:
  KeepGenerator cpu_;
  std::optional<KeepGenerator> gpu_;
};

std::optional<TensorData> copyOf(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(copyOut(tensor)) : std::nullopt;
}

/// Gradients of the roots by leaf, undefined where there is none.
std::vector<at::Tensor> gradientsBy(const std::vector<at::Tensor>& leaves, const std::vector<at::Tensor>& roots,
                                    const std::vector<at::Tensor>& cotangents, bool createGraph = false) {
  std::vector<at::Tensor> wanted;
  std::ranges::copy_if(leaves, std::back_inserter(wanted), [](const at::Tensor& leaf) { return leaf.defined(); });
  std::vector<at::Tensor> gradients(leaves.size());
  if (roots.empty() || wanted.empty()) return gradients;
  const auto found = torch::autograd::grad(roots, wanted, cotangents, /*retain_graph=*/createGraph, createGraph,
                                           /*allow_unused=*/true);
  for (std::size_t i = 0, k = 0; i < leaves.size(); ++i)
    if (leaves[i].defined()) gradients[i] = found[k++];
  return gradients;
}

/// One eager forward with its leaves.
struct EagerRun {
  explicit EagerRun(const Analysis& a) : analysis(a), interpreter(a) {
    std::map<std::string, at::Tensor> tied;
    const auto& computation = analysis.computation();
    for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
      const auto& input = computation.inputs[i];
      const auto id = computation.trace.inputs[i];
      leaves.emplace_back();
      given.emplace_back();
      bound.emplace_back();
      versions.push_back(0);
      if (!id) continue;
      if (auto number = analysis.request.numbers.find(input.name);
          input.kind == InputKind::user && number != analysis.request.numbers.end()) {
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
        shared = tensor.clone();  // the run writes in place, and the file's weights must not change
        if (analysis.document->value(id).requiresGrad) shared.requires_grad_(true);
        if (shared.requires_grad())
          leaves.back() = shared;  // asked now: an in-place write can make a buffer require a gradient
      }
      interpreter.bind(id, shared);
      given.back() = tensor;
      bound.back() = shared;
      versions.back() = shared._version();
    }
  }

  void forward() {
    at::AutoGradMode gradMode(true);
    const auto& computation = analysis.computation();
    interpreter.runTrace(computation.trace);
    for (const auto& output : computation.outputs)
      outputs.push_back(output.value && !interpreter.isLeftOut(output.value) ? interpreter.value(output.value)
                                                                             : c10::IValue());
  }

  /// What the forward left in parameters, buffers and inputs that it wrote. Some kernels (batch norm's) write to a
  /// buffer without a word, so that only the content shows.
  TensorMap written() const {
    TensorMap written;
    const auto& computation = analysis.computation();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto kind = computation.outputs[i].kind;
      if ((kind != OutputKind::bufferMutation && kind != OutputKind::inputMutation) || !outputs[i].isTensor()) continue;
      written[(kind == OutputKind::bufferMutation ? "b." : "in.") + computation.outputs[i].target] =
          copyOut(outputs[i].toTensor());
    }
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const auto kind = computation.inputs[i].kind;
      const bool maybe = kind == InputKind::buffer || kind == InputKind::user ||
                         (kind == InputKind::parameter && bound[i].defined() && bound[i]._version() != versions[i]);
      if (!maybe || !bound[i].defined() || given[i].layout() != at::kStrided) continue;
      if (bound[i].sizes() == given[i].sizes() && at::equal(bound[i].detach(), given[i])) continue;
      written.try_emplace(resultKey(computation.inputs[i], "b."), copyOut(bound[i].detach()));
    }
    return written;
  }

  /// Gradients by leaf, undefined where there is none. With `createGraph` they can be differentiated, and the
  /// cotangents too.
  std::vector<at::Tensor> backward(bool createGraph = false) {
    std::vector<at::Tensor> roots, cotangents;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto it = analysis.request.cotangents.find(userOutputPosition(analysis.computation(), i));
      if (it == analysis.request.cotangents.end() || !outputs[i].isTensor() || !outputs[i].toTensor().requires_grad())
        continue;
      roots.push_back(outputs[i].toTensor());
      cotangents.push_back(Placement().place(it->second, toDevice(outputs[i].toTensor().device())));
      if (createGraph) cotangents.back().requires_grad_(true);
      cotangentLeaves[i] = cotangents.back();
    }
    return gradientsBy(leaves, roots, cotangents, createGraph);
  }

  const Analysis& analysis;
  EagerInterpreter interpreter;
  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> given,
      bound;  // inputs as they are in the file, and as the run has them; undefined for what is not a tensor
  std::vector<std::int64_t> versions;  // of `bound` before the run: how often it was written
  std::vector<c10::IValue> outputs;
  std::map<std::size_t, at::Tensor> cotangentLeaves;  // by output, those that were used
};

/// Gradients of the first derivative's outputs and gradients, by input of `second`.
RunResult differentiateTwice(EagerRun& run, const Analysis& second) {
  const auto& first = run.analysis;
  const auto gradients = run.backward(true);
  std::vector<at::Tensor> results;  // as second's user outputs
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    if (!userOutputPosition(first.computation(), i).empty())
      results.push_back(run.outputs[i].isTensor() ? run.outputs[i].toTensor() : at::Tensor());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (first.joint.outputs.at(first.joint.resultCount + i)) results.push_back(gradients[i]);

  std::vector<at::Tensor> roots, cotangents;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto it = second.request.cotangents.find(std::to_string(i));
    if (it == second.request.cotangents.end() || !results[i].defined() || !results[i].requires_grad()) continue;
    roots.push_back(results[i]);
    cotangents.push_back(Placement().place(it->second, toDevice(results[i].device())));
  }
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves = run.leaves;
  for (std::size_t i = 0; i < first.computation().inputs.size(); ++i)
    names.push_back(resultKey(first.computation().inputs[i], "p."));
  for (const auto& [output, leaf] : run.cotangentLeaves) {
    leaves.push_back(leaf);
    names.push_back("in." +
                    first.document->displayName(first.joint.inputs.at(first.computation().inputs.size() + output)));
  }
  RunResult result;
  for (const auto& tensor : results) result.outputs.push_back(copyOf(tensor));
  const auto found = gradientsBy(leaves, roots, cotangents);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (found[i].defined()) result.gradients[names[i]] = copyOut(found[i]);
  return result;
}

/// Lets go of each value after its last use, unless the trace returns it.
void runAll(Evaluator& evaluator, const Trace& trace,
            const std::function<void(Evaluator&, BoundSymbolId)>& after = {}) {
  const LastUses lastUses(evaluator.document(), trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    evaluator.run(trace.ops[i]);
    if (after) after(evaluator, trace.ops[i]);
    evaluator.releaseOwn(lastUses.values(i));
  }
}

/// What the forward returns only for the backward, which holds it by now.
void releaseSaved(Evaluator& evaluator, const Trace& forward) {
  const std::set<ValueId> results(forward.outputs.begin(), forward.outputs.begin() + forward.resultCount);
  for (auto i = forward.resultCount; i < forward.outputs.size(); ++i)
    if (const auto id = forward.outputs[i]; id && !results.contains(id)) evaluator.releaseOwn({&id, 1});
}

/// A GPU without memory says nothing about the model.
[[noreturn]] void throwOwnFailure(const c10::Error& error, const std::string& path) {
  const std::string message = std::string("LibTorch's own run fails: ") + error.what_without_backtrace();
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) throw OutOfMemory(message, path);
  throw Error(ErrorCode::execution, message, path);
}

/// The numbers with the strides of `tensor`, where it is dense.
at::Tensor laidOutAs(const at::Tensor& tensor, const at::Tensor& numbers) {
  if (!tensor.is_non_overlapping_and_dense()) return numbers;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()).copy_(numbers);
}

/// The tensor with one element of `share`, and at least one, a rounding step off. Two ways to write a formula in
/// float32 differ by few of its steps, so that only few elements round to another number of 16 bits.
at::Tensor fewRoundedOtherwise(const at::Tensor& tensor, std::uint64_t seed) {
  constexpr std::int64_t share = 64;
  auto moved = tensor.clone(at::MemoryFormat::Contiguous);
  if (moved.numel() == 0) return moved;
  auto* words = static_cast<std::uint16_t*>(moved.data_ptr());
  const std::uint16_t exponent = tensor.scalar_type() == at::kBFloat16 ? 0x7f80 : 0x7c00;
  std::mt19937_64 bits(seed);
  for (std::int64_t first = 0; first < moved.numel(); first += share) {
    const auto drawn = bits();
    auto& word = words[first + static_cast<std::int64_t>(drawn >> 1) % std::min(share, moved.numel() - first)];
    const bool isZero = (word & 0x7fff) == 0, isFinite = (word & exponent) != exponent;
    if (!isZero && isFinite) word = static_cast<std::uint16_t>((drawn & 1) != 0 ? word + 1 : word - 1);
  }
  return laidOutAs(tensor, moved);
}

/// The tensor with each element up to three steps off, as the exponentials and sums of two libraries are; what is 0, or
/// not finite, stays.
at::Tensor eachRoundedOtherwise(const at::Tensor& tensor, std::uint64_t seed) {
  constexpr double steps = 3;
  const auto step = tensor.scalar_type() == at::kDouble ? 0x1p-52 : 0x1p-23;
  const auto drawn = at::rand(tensor.sizes(), at::detail::createCPUGenerator(seed), tensor.options());
  auto moved = tensor * (1 + (drawn * 2 - 1) * (steps * step));
  return laidOutAs(tensor, moved);
}

template <class Round>
RunResult runRounded(const Analysis& analysis, bool backwardOnly, Round&& round) {
  const auto& document = *analysis.document;
  return runJoint(analysis, [&](Evaluator& evaluator, BoundSymbolId op) {
    const auto& bound = document.boundSymbol(op);
    if ((backwardOnly && !isBackward(bound.origin.role)) || document.symbol(bound.symbol).isView) return;
    for (const auto output : document.outputs(op)) {
      if (!evaluator.hasTensor(output)) continue;
      if (const auto rounded = round(evaluator.tensor(output)); rounded.defined()) evaluator.bind(output, rounded);
    }
  });
}

/// By storage: some op of the joint trace writes to it.
IdVector<StorageId, char> writtenStorages(const Analysis& analysis) {
  const auto& document = *analysis.document;
  IdVector<StorageId, char> written(document.storageCount(), 0);
  for (auto op : analysis.joint.ops)
    for (auto value : writtenOperands(document, op))
      if (const auto storage = document.value(value).storage) written[storage] = 1;
  return written;
}

}  // namespace

RunResult runJoint(const Analysis& analysis, const std::function<void(Evaluator&, BoundSymbolId)>& after) {
  const RunThreads threads(0);
  auto evaluator = evaluatorOf(analysis, startValues(analysis));
  runAll(evaluator, analysis.joint, after);
  return {resultsOf(analysis, evaluator), gradientsOf(analysis, evaluator), mutatedOf(analysis, evaluator)};
}

RunResult runEager(const Analysis& analysis, std::uint64_t roundedGradients) {
  const Seeded seeded(analysis.request.seed, analysis.device);
  EagerRun run(analysis);
  if (roundedGradients != 0) roundGradients(run.interpreter, static_cast<double>(roundedGradients));
  try {
    run.forward();
    RunResult result{.mutated = run.written()};
    const auto gradients = run.backward();
    const auto& computation = analysis.computation();
    for (std::size_t i = 0; i < computation.outputs.size(); ++i)
      if (!userOutputPosition(computation, i).empty())
        result.outputs.push_back(copyOf(run.outputs[i].isTensor() ? run.outputs[i].toTensor() : at::Tensor()));
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto& input = computation.inputs[i];
      if (gradients[i].defined()) result.gradients[resultKey(input, "p.")] = copyOut(gradients[i]);
    }
    return result;
  } catch (const c10::Error& e) {
    throwOwnFailure(e, analysis.file.path);
  }
}

RunResult runEagerTwice(const Analysis& second) {
  if (!second.differentiated) throw Error(ErrorCode::badUse, "it is not a second derivative", second.file.path);
  const auto& first = *second.differentiated;
  const Seeded seeded(first.request.seed, first.device);
  try {
    EagerRun run(first);
    run.forward();
    auto written = run.written();
    auto result = differentiateTwice(run, second);
    result.mutated = std::move(written);
    return result;
  } catch (const c10::Error& e) {
    throwOwnFailure(e, first.file.path);
  }
}

EagerTimes timeEager(const Analysis& analysis) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Seeded seeded(analysis.request.seed, analysis.device);
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

RunResult runSplit(const Analysis& analysis) {
  const RunThreads threads(0);
  const auto inputs = inputValues(analysis);
  auto forward = evaluatorOf(analysis, inputs);
  runAll(forward, analysis.forward);

  // The backward gets what its signature names and nothing else, and goes on with the forward's generator.
  auto backward = evaluatorOf(analysis, cotangentValues(analysis));
  backward.setGenerators(forward.generators());
  backward.takeDraws(forward);
  for (auto id : analysis.backward.inputs)
    if (id && forward.has(id)) backward.bind(id, forward.value(id));
  for (const auto& [id, value] : inputs)
    if (analysis.constants.contains(id)) backward.bind(id, value);
  releaseSaved(forward, analysis.forward);
  runAll(backward, analysis.backward);
  return {resultsOf(analysis, forward), gradientsOf(analysis, backward), mutatedOf(analysis, forward)};
}

RunResult runJointRounded(const Analysis& analysis, std::uint64_t seed, bool backwardOnly) {
  return runRounded(analysis, backwardOnly, [&](const at::Tensor& tensor) {
    const bool isHalf = tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
    return isHalf ? fewRoundedOtherwise(tensor, ++seed) : at::Tensor();
  });
}

RunResult runRoundedByStep(const Analysis& analysis, std::uint64_t seed) {
  return runRounded(analysis, false, [&](const at::Tensor& tensor) {
    const bool isFull = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
    return isFull && tensor.layout() == at::kStrided ? eachRoundedOtherwise(tensor, ++seed) : at::Tensor();
  });
}

RunValues runValues(const Analysis& analysis, const Progress& progress) {
  const RunThreads threads(0);
  const auto& document = *analysis.document;
  const auto written = writtenStorages(analysis);
  RunValues values;
  auto evaluator = evaluatorOf(analysis, startValues(analysis));
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
    const auto op = analysis.joint.ops[i];
    progress.at(document.symbol(op).name, static_cast<double>(i) / static_cast<double>(analysis.joint.ops.size()));
    evaluator.run(op);
    for (auto output : document.outputs(op)) {
      if (!evaluator.has(output)) continue;
      const auto& value = evaluator.value(output);
      if (!value.isTensor()) {
        if (auto number = numberArgument(value)) values.numbers[output] = *number;
        continue;
      }
      if (const auto& tensor = value.toTensor(); tensor.defined()) {
        const auto storage = document.value(output).storage;
        const bool changes = !storage || written[storage];
        if (!changes && document.storage(storage).external) continue;
        const bool plain =
            tensor.layout() == at::kStrided && tensor.device().is_cpu() && !tensor.is_conj() && !tensor.is_neg();
        values.tensors[output] = plain && !changes ? keepTensor(tensor) : copyOut(tensor);
      }
    }
  }
  return values;
}

}  // namespace retrograd
