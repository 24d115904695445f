#include "core/torch/analysis/pass_list.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <unordered_set>

#include "core/derivation/result_names.h"
#include "core/derivation/sizes.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/analysis/opaque_results.h"
#include "core/torch/analysis/symbolic_joint.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/placement.h"
#include "core/torch/grad/elide_copies.h"
#include "core/torch/packs/libtorch/mathematical_forms.h"
#include "core/trace/dead_code.h"
#include "core/trace/opaque.h"

namespace retrograd {
namespace {

/// Inputs that the graph returns again after a write to them.
std::unordered_set<std::string_view> returnedWritten(const Computation& computation) {
  std::unordered_set<std::string_view> inputs;
  for (const auto& output : computation.outputs)
    if (output.kind == OutputKind::inputMutation) inputs.insert(output.target);
  return inputs;
}

/// Which computation inputs get a gradient: parameters by the file's flag, floating and complex user inputs unless set
/// otherwise. An input that the graph returns again after a write to it has none; one that is written to in place is
/// found while deriving (WritesToLeaf).
std::vector<char> differentiated(const ModelFile& file, const DerivationRequest& request) {
  const auto& computation = file.computation;
  const auto& document = *file.document;
  std::vector<char> wanted(computation.inputs.size(), 0);
  const auto written = returnedWritten(computation);
  if (request.gradInputs)
    for (const auto& name : *request.gradInputs)
      if (std::ranges::none_of(computation.inputs,
                               [&](const InputSpec& i) { return i.kind == InputKind::user && i.name == name; }))
        throw Error(ErrorCode::badUse, "the file has no such input", "input " + name);
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto& input = computation.inputs[i];
    const auto value = computation.trace.inputs[i];
    if (!value || !document.isTensor(value) || !isDifferentiable(document.meta(value).dtype)) continue;
    if (input.kind == InputKind::parameter) wanted[i] = input.requiresGrad;
    if (input.kind == InputKind::user)
      wanted[i] = request.gradInputs ? std::ranges::find(*request.gradInputs, input.name) != request.gradInputs->end()
                                     : input.requiresGrad && !written.contains(input.name);
  }
  return wanted;
}

bool hasWrites(const Document& document) {
  for (const auto op : document.boundSymbolIds()) {
    const auto& bound = document.boundSymbol(op);
    if (bound.origin.role == Role::none && document.symbol(bound.symbol).isMutable) return true;
  }
  return false;
}

/// Real values for the grad transform: runs the joint as it grows, from the first question on. Most models never ask:
/// then no weight is touched. Where the device is not here, the CPU takes its place.
class Concretiser final : public RealValues {
 public:
  Concretiser(const Analysis& analysis, const Document& document, const DerivationRequest& request)
      : analysis_(analysis), document_(document), request_(request), walk_(document, *leftOut_) {}

  at::Tensor value(const std::vector<BoundSymbolId>& emitted, ValueId value) override {
    if (!evaluator_) begin();
    at::AutoGradMode noGrad(false);
    for (; done_ < emitted.size(); ++done_) {
      for (auto operand : document_.operands(emitted[done_])) bindCotangent(operand);
      walk_.visit(emitted[done_]);
      evaluator_->run(emitted[done_]);
    }
    bindCotangent(value);
    return evaluator_->tensor(value);
  }
  void addCotangent(ValueId id, std::size_t output) override { outputOf_[id] = output; }
  void addConstant(ValueId id, const TensorData& data) override {
    if (evaluator_) evaluator_->bind(id, borrowTensor(data));
    else constants_.emplace_back(id, data);
  }

 private:
  void begin() {
    const bool here = deviceStatus(analysis_.device).available;
    const auto inputs = inputValues(analysis_, here ? std::nullopt : std::optional(Device()));
    leftOut_->filled = filledResults(analysis_, document_);
    evaluator_.emplace(document_, analysis_.request.seed, here ? std::nullopt : std::optional(c10::Device(c10::kCPU)));
    evaluator_->setLeftOut(leftOut_);
    for (const auto& [id, value] : inputs) evaluator_->bind(id, value);
    for (const auto& [id, data] : constants_) evaluator_->bind(id, borrowTensor(data));
  }

  /// Cotangents whose data a formula reads must exist before the joint does: chosen one by one as they are asked for.
  void bindCotangent(ValueId id) {
    if (evaluator_->has(id) || document_.value(id).kind != ValueKind::cotangent) return;
    const auto position = userOutputPosition(analysis_.computation(), outputOf_.at(id));
    Analysis scratch;
    chooseCotangents(scratch, request_, {{position, document_.meta(id)}});
    const auto device = document_.meta(id).device;
    evaluator_->bind(id, Placement().place(scratch.request.cotangents.at(position),
                                           deviceStatus(device).available ? device : Device()));
  }

  const Analysis& analysis_;
  const Document& document_;
  const DerivationRequest& request_;
  std::map<ValueId, std::size_t> outputOf_;                // of cotangents
  std::vector<std::pair<ValueId, TensorData>> constants_;  // until it begins
  std::optional<Evaluator> evaluator_;
  std::shared_ptr<LeftOut> leftOut_ = std::make_shared<LeftOut>();
  LeftOutWalk walk_;
  std::size_t done_ = 0;
};

/// Everything of the derivation that needs no change of the Analysis but its document.
class Deriver {
 public:
  /// `sizes`: what the size symbols are, where not as for the inputs at hand.
  Deriver(const Analysis& analysis, Document& document, const DerivationRequest& request, const Progress& progress,
          const SizeBindings* sizes = nullptr)
      : analysis_(analysis), document_(document), request_(request), progress_(progress), sizes_(sizes) {
    const auto& computation = analysis.computation();
    transform_.differentiate = differentiated(analysis.file, request);
    transform_.rules = analysis.request.rules.get();
    transform_.createGraph = request.createGraph;
    if (analysis.differentiated) {
      transform_.readLate = analysis.differentiated->readLate;
      transform_.gradientSizes = analysis.differentiated->gradientSizes;
    }
    for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
      const auto& input = computation.inputs[i];
      const auto value = computation.trace.inputs[i];
      transform_.inputMetas.push_back(metaOfInput(input, value));
      if (auto number = analysis.request.numbers.find(input.name);
          value && input.kind == InputKind::user && number != analysis.request.numbers.end())
        transform_.numbers[value] = numberAt(value, number->second);
    }
    if (request.exactCotangents)
      transform_.hasCotangent = [this](std::size_t i) {
        return request_.cotangents.contains(userOutputPosition(analysis_.computation(), i));
      };
  }

  JointResult joint(RuleCache& cache) {
    const auto before = hasWrites(document_) ? std::optional(document_) : std::nullopt;
    for (;;) {
      Concretiser real(analysis_, document_, request_);
      transform_.realValues = sizes_ ? nullptr : &real;
      try {
        return gradTransform(document_, analysis_.computation(), transform_, cache, progress_);
      } catch (const WritesToLeaf& leaf) {
        transform_.differentiate[leaf.input] = 0;
        document_ = *before;
        cache = {};
      }
    }
  }

 private:
  std::optional<TensorMeta> metaOfInput(const InputSpec& input, ValueId value) const {
    if (input.kind == InputKind::user) {
      const auto it = analysis_.request.inputs.find(input.name);
      if (it == analysis_.request.inputs.end() || !value || !document_.isTensor(value)) return std::nullopt;
      auto now = it->second.meta;
      now.device = analysis_.device;
      const auto& declared = document_.meta(value);
      if (sizes_) return inputMetaAt(declared, now, analysis_.file.document->sizeHints(), *sizes_);
      return declared.isSymbolic() && now.sizes == declared.sizes && now.strides == declared.strides &&
                     now.offset == declared.offset
                 ? declared
                 : now;
    }
    for (const auto* map : {&analysis_.file.weights, &analysis_.file.constants})
      if (auto it = map->find(input.target); it != map->end()) {
        auto meta = it->second.meta;
        meta.device = analysis_.device;
        return meta;
      }
    return std::nullopt;
  }

  Argument numberAt(ValueId value, const Argument& now) const {
    const auto size = sizes_ ? evaluateSize(document_.sizeExpression(value), *sizes_) : std::nullopt;
    return size ? Argument::ofInt(*size) : now;
  }

  const Analysis& analysis_;
  Document& document_;
  const DerivationRequest& request_;
  const Progress& progress_;
  const SizeBindings* sizes_;
  TransformOptions transform_;
};

/// The joint of an analysis whose inputs were chosen: gradTransform() with what they say of each input. `document`, the
/// analysis's own or a copy of it, grows. `sizes`: what the size symbols are, where not as for the inputs at hand.
/// Throws as gradTransform(), but for WritesToLeaf: such an input is left out.
JointResult deriveJoint(const Analysis& analysis, Document& document, const DerivationRequest& request,
                        RuleCache& cache, const Progress& progress, const SizeBindings* sizes = nullptr) {
  return Deriver(analysis, document, request, progress, sizes).joint(cache);
}

void gradTransform(PassState& state) {
  state.progress.at("deriving the backward", 0.3);
  takeMathematicalForms();
  state.result = deriveJoint(state.analysis, state.document, state.request, state.cache, state.progress);
  for (const auto& op : takeMathematicalForms())
    state.problems.push_back({Problem::Severity::note, mathematicalFormNote, op, -1});
  auto& history = state.result.joint.history;
  history = state.analysis.computation().trace.history;
  history.push_back({"Grad transform", {}, "computation", 0, {}});
}

void symbolicSizes(PassState& state) {
  if (!state.asRead) return;
  state.progress.at("symbolic sizes", 0.6);
  const auto deriveAt = [&](const SizeBindings& sizes) {
    SizedJoint sized{*state.asRead, {}};
    setSizes(sized.document, sizes);
    RuleCache own;
    sized.result = deriveJoint(state.analysis, sized.document, state.request, own, state.progress, &sizes);
    return sized;
  };
  const auto notes = expressSizes(state.analysis.file, state.result, deriveAt);
  state.problems.insert(state.problems.end(), notes.begin(), notes.end());
}

void removeDeadCode(PassState& state) {
  state.progress.at("splitting", 0.9);
  state.result.joint = eliminateDeadCode(state.document, state.result.joint);
}

void takeCopiesBack(PassState& state) { state.result.joint = elideCopies(state.document, state.result.joint); }

void recompute(PassState& state) {
  auto partitioned = partition(state.document, state.result.joint, state.request.partition);
  state.result.joint = std::move(partitioned.joint);
  state.problems.insert(state.problems.end(), partitioned.problems.begin(), partitioned.problems.end());
}

void split(PassState& state) {
  const auto& joint = state.result.joint;
  state.halves = splitJoint(state.document, joint, state.analysis.computation().inputs.size());
  for (auto* half : {&state.halves.forward, &state.halves.backward}) {
    half->history = joint.history;
    half->history.push_back({"Split", {}, "joint", 0, {}});
  }
}

struct Pass {
  const char* name;  ///< as in the history of what it makes
  void (*run)(PassState&);
  double PassSeconds::* seconds;  ///< where its time counts; null: nowhere
};

constexpr Pass passes[] = {
    {"Grad transform", gradTransform, &PassSeconds::joint},
    {"Symbolic sizes", symbolicSizes, nullptr},
    {"Dead code elimination", removeDeadCode, &PassSeconds::split},
    {"Copy elision", takeCopiesBack, &PassSeconds::split},
    {"Recomputation", recompute, &PassSeconds::split},
    {"Split", split, &PassSeconds::split},
};

}  // namespace

PassSeconds runPasses(PassState& state, std::vector<PassResult>* results) {
  PassSeconds seconds;
  auto known = state.analysis.computation().trace.history.size();
  for (const auto& pass : passes) {
    const auto start = std::chrono::steady_clock::now();
    pass.run(state);
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (pass.seconds) seconds.*pass.seconds += took;
    for (auto* trace : {&state.result.joint, &state.halves.forward, &state.halves.backward}) {
      if (trace->history.size() <= known) continue;  // the pass did nothing to it
      trace->history[known].seconds = took;
      if (results) results->push_back({pass.name, *trace});
    }
    known = state.result.joint.history.size();
  }
  return seconds;
}

}  // namespace retrograd
