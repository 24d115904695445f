#include "core/torch/analysis/analyse.h"

#include <fmt/format.h>

#include <chrono>
#include <set>
#include <string_view>
#include <unordered_set>

#include "core/derivation/precision.h"
#include "core/derivation/sizes.h"
#include "core/formats/text/text_trace.h"
#include "core/split/split.h"
#include "core/torch/analysis/bindings.h"
#include "core/torch/analysis/cast_model.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/analysis/opaque_results.h"
#include "core/torch/analysis/recorded_step.h"
#include "core/torch/analysis/symbolic_joint.h"
#include "core/torch/execution/determinism.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/memory_budget.h"
#include "core/torch/execution/placement.h"
#include "core/torch/grad/elide_copies.h"
#include "core/torch/grad/transform.h"
#include "core/torch/packs/libtorch/mathematical_forms.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/dead_code.h"
#include "core/trace/diff/difference.h"
#include "core/trace/effects.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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
            document_, analysis_.request.seed, inputBindings(analysis_, on),
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

void record(Trace& trace, std::string pass, std::string parent, double seconds, const std::vector<PassRecord>& before) {
  trace.history = before;
  trace.history.push_back({std::move(pass), {}, std::move(parent), seconds, {}});
}

/// Joint, forward and backward into `analysis`, whose document grows; the joint after each pass into `passes`, where
/// there is one.
void derive(Analysis& analysis, const DerivationRequest& request, const Progress& progress,
            std::vector<Trace>* passes) {
  auto& document = *analysis.file.document;
  RuleCache cache;
  const auto asRead = document.sizeSymbols().empty() ? std::nullopt : std::optional(document);
  progress.at("deriving the backward", 0.3);
  auto start = Clock::now();
  takeMathematicalForms();
  auto result = Deriver(analysis, document, request, progress).joint(cache);
  for (const auto& op : takeMathematicalForms())
    analysis.problems.push_back({Problem::Severity::note, mathematicalFormNote, op, -1});
  analysis.times.joint = since(start);
  record(result.joint, "Grad transform", "computation", analysis.times.joint, analysis.computation().trace.history);
  if (asRead) {
    progress.at("symbolic sizes", 0.6);
    const auto deriveAt = [&](const SizeBindings& sizes) {
      SizedJoint sized{*asRead, {}};
      setSizes(sized.document, sizes);
      RuleCache own;
      sized.result = Deriver(analysis, sized.document, request, progress, &sizes).joint(own);
      return sized;
    };
    auto notes = expressSizes(analysis.file, result, deriveAt);
    analysis.problems.insert(analysis.problems.end(), notes.begin(), notes.end());
  }
  progress.at("splitting", 0.9);
  start = Clock::now();
  const auto inputCount = analysis.computation().inputs.size();
  const auto lean = eliminateDeadCode(document, result.joint);
  const auto elided = elideCopies(document, lean);
  auto partitioned = partition(document, elided, request.partition);
  analysis.joint = std::move(partitioned.joint);
  if (passes) *passes = {result.joint, lean, elided, analysis.joint};
  analysis.problems.insert(analysis.problems.end(), partitioned.problems.begin(), partitioned.problems.end());
  auto [forward, backward] = splitJoint(document, analysis.joint, inputCount);
  analysis.times.split = since(start);
  record(forward, "Split", "joint", analysis.times.split, analysis.joint.history);
  record(backward, "Split", "joint", analysis.times.split, analysis.joint.history);
  analysis.forward = std::move(forward);
  analysis.backward = std::move(backward);
  for (const auto& [id, data] : result.constants) analysis.constants[id] = data;
  analysis.mutated = std::move(result.mutated);
  analysis.gradients = std::move(result.gradients);
  analysis.readLate = std::move(result.readLate);
  analysis.lateReads = std::move(result.lateReads);
  analysis.gradientSizes = std::move(result.gradientSizes);
  analysis.refusedGradients = std::move(result.refused);
  noteOpaqueOps(analysis);
  analysis.dataDependent = analysis.file.dataDependent;
  analysis.dataDependent.insert(analysis.dataDependent.end(), result.dataDependent.begin(), result.dataDependent.end());
  std::map<std::string, TensorMeta> cotangents;
  for (std::size_t i = 0; i < analysis.computation().outputs.size(); ++i)
    if (auto id = analysis.joint.inputs[inputCount + i])
      cotangents[userOutputPosition(analysis.computation(), i)] = document.meta(id);
  chooseCotangents(analysis, request, cotangents);
}

/// Derived traces that the file gives too, as a golden test does, against those derived here.
void comparePrinted(Analysis& analysis) {
  const auto& printed = *analysis.file.printed;
  TraceComparison comparison(*printed.document, *analysis.file.document);
  comparison.compare(printed.computation->trace,
                     analysis.computation().trace);  // the same text: this pairs its ops and values
  for (const auto* trace : {&analysis.joint, &analysis.forward, &analysis.backward}) {
    const auto* given = printed.find(trace->kind);
    const auto difference = given ? comparison.compare(*given, *trace) : std::nullopt;
    if (!difference) continue;
    auto text = fmt::format("the {} in the text is not the one that follows from its computation: {}",
                            name(trace->kind), difference->what);
    if (!difference->first.empty()) text += fmt::format("\n  text:    {}", difference->first);
    if (!difference->second.empty()) text += fmt::format("\n  derived: {}", difference->second);
    analysis.problems.push_back({Problem::Severity::note, text, {}, -1});
    analysis.printedDifferences.push_back(std::move(text));
  }
  if (analysis.printedDifferences.empty())
    analysis.problems.push_back(
        {Problem::Severity::note, "the derived traces in the text are those that follow from its computation", {}, -1});
}

/// Of a model on a GPU: which ops may give other last bits when they run again.
void sayLastBits(Analysis& analysis) {
  if (analysis.device.type != Device::Type::cuda) return;
  if (auto note = lastBitNote(*analysis.file.document, analysis.joint.ops); !note.empty())
    analysis.problems.push_back({Problem::Severity::note, std::move(note), toString(analysis.device), -1});
}

}  // namespace

namespace {

/// The request as it was used: chooseInputs() and the derivation add the inputs, numbers and cotangents.
DerivationRequest used(DerivationRequest request) {
  request.inputs.clear();
  request.numbers.clear();
  request.shapes.clear();
  request.cotangents.clear();
  return request;
}

std::shared_ptr<Analysis> analyseOnce(ModelFile file, const DerivationRequest& request, const Progress& progress,
                                      std::shared_ptr<const Analysis> of, std::vector<Trace>* passes = nullptr) {
  auto analysis = std::make_shared<Analysis>();
  analysis->file = std::move(file);
  analysis->request = used(request);
  analysis->differentiated = std::move(of);
  // Printed traces say what they were derived for; any other file's tensors come to the CPU.
  const auto told =
      analysis->file.printed ? deviceOf(*analysis->file.document, analysis->computation().trace.inputs) : Device();
  analysis->device = withIndex(request.device.value_or(told));
  analysis->problems = analysis->file.problems;
  if (const auto status = deviceStatus(analysis->device); !status.available)
    analysis->problems.push_back({Problem::Severity::note,
                                  "derived for it without it: what LibTorch decides by the GPU at hand (kernels of "
                                  "attention, cuDNN) may differ there; " +
                                      status.reason,
                                  toString(analysis->device), -1});
  const auto& history = analysis->computation().trace.history;
  analysis->times.trace =
      history.empty() ? 0 : history.front().seconds;  // the graph; the rest is opening and verifying the archive
  analysis->times.read = analysis->file.seconds - analysis->times.trace;
  if (analysis->file.isText) try {
      const MemoryBudget budget(openingMemory(analysis->file.identity.size));
      drawWeights(*analysis, request.seed);
    } catch (const Error& e) {
      throw Error(ErrorCode::badInput, e.message(), analysis->file.path);  // its sizes are what the file says
    }
  if (request.precision) castModel(analysis->file, *request.precision);
  relocate(*analysis->file.document, analysis->device);
  const bool runnable = std::none_of(analysis->problems.begin(), analysis->problems.end(),
                                     [](const Problem& p) { return p.severity == Problem::Severity::error; });
  try {
    if (runnable) {
      const MemoryBudget budget(openingMemory(analysis->file.identity.size));
      chooseInputs(*analysis, request.data.batch.empty() ? request : withBatch(*analysis, request, progress));
      filledResults(*analysis, *analysis->file.document);  // what does not fit is said before anything is derived
      derive(*analysis, request, progress, passes);
      if (analysis->file.printed) comparePrinted(*analysis);
      sayLastBits(*analysis);
    }
  } catch (const Error& e) {
    if (e.code() == ErrorCode::cancelled) throw;
    if (e.code() == ErrorCode::badUse || e.code() == ErrorCode::badInput || e.code() == ErrorCode::io)
      throw e.at(analysis->file.path);
    // The computation is still worth seeing: an op that cannot be derived is a problem with a place, not the end.
    analysis->problems.push_back({Problem::Severity::error, e.message(), e.place(), -1});
    analysis->joint = {};
  }
  analysis->links = OriginLinks(*analysis->file.document, analysis->joint);
  analysis->document = analysis->file.document;
  return analysis;
}

}  // namespace

std::shared_ptr<const Analysis> analyse(ModelFile file, const DerivationRequest& request, const Progress& progress) {
  if (file.recording) return analysisOfRecording(std::move(file), request);
  if (request.order <= 1) return analyseOnce(std::move(file), request, progress, nullptr);
  auto inner = request;
  inner.order = request.order - 1;
  inner.createGraph = true;
  inner.partition = {};
  inner.partition.regions = false;  // a draw that is replayed would become one of its own
  auto of = analyse(std::move(file), inner, progress);
  if (!of->derived()) return of;
  DerivationRequest outer;
  outer.seed = request.seed;
  outer.createGraph = request.createGraph;
  outer.partition = request.partition;
  outer.rules = request.rules;
  outer.filled = request.filled;
  outer.device = request.device;
  auto model = asModel(*of, request.again);
  // An input that nobody asked for, or that is written to, is not differentiated now either.
  std::set<std::string> constant;
  for (std::size_t i = 0; i < of->computation().inputs.size(); ++i) {
    const auto& input = of->computation().inputs[i];
    const auto value = of->computation().trace.inputs[i];
    if (input.kind == InputKind::user && value && !of->document->value(value).requiresGrad) constant.insert(input.name);
  }
  if (!constant.empty() || request.gradInputs) {
    outer.gradInputs.emplace();
    for (const auto& input : model.computation.inputs)
      if (input.kind == InputKind::user && !of->request.numbers.contains(input.name) && !constant.contains(input.name))
        outer.gradInputs->push_back(input.name);
  }
  return analyseOnce(std::move(model), outer, progress, of);
}

DerivationTimes timeDerivation(const Analysis& analysis, int repeats) {
  DerivationTimes times;
  DerivationRequest request;
  request.seed = analysis.request.seed;
  request.gradInputs = analysis.request.gradInputs;
  const auto inputCount = analysis.computation().inputs.size();
  const auto deriveOn = [&](Document& document, RuleCache& cache, std::vector<double>& joint,
                            std::vector<double>& split) {
    auto start = Clock::now();
    const auto result = Deriver(analysis, document, request, {}).joint(cache);
    joint.push_back(since(start));
    start = Clock::now();
    const auto lean = elideCopies(document, eliminateDeadCode(document, result.joint));
    const auto parts = splitJoint(document, partition(document, lean, analysis.request.partition).joint, inputCount);
    split.push_back(since(start));
  };
  // A cache belongs to one document; a copy of the document it was filled on knows all its ids.
  RuleCache warm;
  Document seen = *analysis.document;
  std::vector<double> ignored;
  deriveOn(seen, warm, ignored, ignored);
  for (int i = 0; i < repeats; ++i) {
    RuleCache cold;
    Document document = *analysis.document;
    deriveOn(document, cold, times.joint, times.split);
    Document again = seen;
    deriveOn(again, warm, times.jointWarm, ignored);
  }
  return times;
}

DerivationRequest requestOf(const Analysis& analysis) {
  DerivationRequest request = analysis.request;  // all of it, so that no field is lost: weights and precision too
  request.data.batch.clear();                    // the inputs that were used are there
  request.exactCotangents = true;
  request.device = analysis.device;
  request.gradInputs.emplace();
  const auto& computation = analysis.computation();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    if (const auto id = computation.trace.inputs[i];
        id && computation.inputs[i].kind == InputKind::user && analysis.document->value(id).requiresGrad)
      request.gradInputs->push_back(computation.inputs[i].name);
  return request;
}

std::shared_ptr<const Analysis> deriveAgain(const Analysis& analysis, const DerivationRequest& request,
                                            std::vector<Trace>* joints, const Progress& progress) {
  if (analysis.file.recording)
    throw Error(ErrorCode::badUse, "is a recording: its ops are those that ran, and nothing is derived",
                analysis.file.path);
  auto file = analysis.file;  // tensors are shared; the document is copied, as deriving makes it grow
  file.document = std::make_shared<Document>(*analysis.document);
  file.printed = nullptr;
  auto again = analyseOnce(std::move(file), request, progress, analysis.differentiated, joints);
  again->inputSource = analysis.inputSource;  // where they came from at first, not that they were handed on
  again->sessionPath = analysis.sessionPath;
  again->marks = analysis.marks;
  return again;
}

}  // namespace retrograd
