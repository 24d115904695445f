#include "core/torch/analysis/derive_joint.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "core/derivation/result_names.h"
#include "core/derivation/sizes.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/analysis/opaque_results.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/placement.h"

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
      if (std::none_of(computation.inputs.begin(), computation.inputs.end(),
                       [&](const InputSpec& i) { return i.kind == InputKind::user && i.name == name; }))
        throw Error(ErrorCode::badUse, "the file has no such input", "input " + name);
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto& input = computation.inputs[i];
    const auto value = computation.trace.inputs[i];
    if (!value || !document.isTensor(value) || !isDifferentiable(document.meta(value).dtype)) continue;
    if (input.kind == InputKind::parameter) wanted[i] = input.requiresGrad;
    if (input.kind == InputKind::user)
      wanted[i] = request.gradInputs ? std::find(request.gradInputs->begin(), request.gradInputs->end(), input.name) !=
                                           request.gradInputs->end()
                                     : input.requiresGrad && !written.contains(input.name);
  }
  return wanted;
}

bool hasWrites(const Document& document) {
  for (std::size_t i = 0; i < document.boundSymbolCount(); ++i) {
    const auto& bound = document.boundSymbol(BoundSymbolId(static_cast<std::int64_t>(i)));
    if (bound.origin.role == Role::none && document.symbol(bound.symbol).isMutable) return true;
  }
  return false;
}

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
    std::unique_ptr<Concretiser> concretiser;
    struct Lazy final : RealValues {  // most models never ask: then no weight is touched
      explicit Lazy(std::map<ValueId, std::size_t>& outputs) : outputOfCotangent(outputs) {}
      std::map<ValueId, std::size_t>& outputOfCotangent;
      std::function<Concretiser&()> make;
      void addCotangent(ValueId id, std::size_t output) override { outputOfCotangent[id] = output; }
      at::Tensor value(const Document& document, const std::vector<BoundSymbolId>& emitted, ValueId id) override {
        return make().value(document, emitted, id);
      }
      void addConstant(ValueId id, const TensorData& data) override {
        constants.emplace_back(id, data);
        if (made) make().addConstant(id, data);
      }
      std::vector<std::pair<ValueId, TensorData>> constants;
      bool made = false;
    } lazy(outputOfCotangent_);
    lazy.make = [&]() -> Concretiser& {
      if (!concretiser) {
        const bool here = deviceStatus(analysis_.device).available;  // elsewhere the CPU takes its place
        const auto on = here ? std::nullopt : std::optional(Device());
        concretiser = std::make_unique<Concretiser>(
            document_, analysis_.request.seed, inputValues(analysis_, on),
            [this](ValueId id) { return drawCotangent(id); },
            here ? std::nullopt : std::optional(c10::Device(c10::kCPU)), filledResults(analysis_, document_));
        for (const auto& [id, data] : lazy.constants) concretiser->addConstant(id, data);
        lazy.made = true;
      }
      return *concretiser;
    };
    if (!sizes_) transform_.realValues = &lazy;
    const auto before = hasWrites(document_) ? std::optional(document_) : std::nullopt;
    for (;;) {
      try {
        auto result = gradTransform(document_, analysis_.computation(), transform_, cache, progress_);
        transform_.realValues = nullptr;
        return result;
      } catch (const WritesToLeaf& leaf) {
        transform_.differentiate[leaf.input] = 0;
        document_ = *before;
        cache.clear();
        concretiser.reset();
        lazy.constants.clear();
        lazy.made = false;
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

  /// Cotangents whose data a formula reads must exist before the joint does: chosen one by one as they are asked for.
  at::Tensor drawCotangent(ValueId id) {
    std::map<std::string, TensorMeta> metas;
    const auto position = userOutputPosition(analysis_.computation(), outputOfCotangent_.at(id));
    Analysis scratch;
    metas[position] = document_.meta(id);
    chooseCotangents(scratch, request_, metas);
    const auto device = document_.meta(id).device;
    return Placement().place(scratch.request.cotangents.at(position),
                             deviceStatus(device).available ? device : Device());
  }

  const Analysis& analysis_;
  Document& document_;
  const DerivationRequest& request_;
  const Progress& progress_;
  const SizeBindings* sizes_;
  TransformOptions transform_;
  std::map<ValueId, std::size_t> outputOfCotangent_;
};

}  // namespace

JointResult deriveJoint(const Analysis& analysis, Document& document, const DerivationRequest& request,
                        RuleCache& cache, const Progress& progress, const SizeBindings* sizes) {
  return Deriver(analysis, document, request, progress, sizes).joint(cache);
}

}  // namespace retrograd
