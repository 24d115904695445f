#include "core/torch/analysis/analyse.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/derivation/result_names.h"
#include "core/formats/recording/recorded_links.h"
#include "core/formats/recording/recording.h"
#include "core/formats/text/text_trace.h"
#include "core/split/partition.h"
#include "core/torch/analysis/cast_model.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/analysis/opaque_results.h"
#include "core/torch/analysis/pass_list.h"
#include "core/torch/execution/determinism.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/memory_budget.h"
#include "core/trace/diff/difference.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

void refuseChanges(const ModelFile& file, const DerivationRequest& request) {
  const auto refuse = [&](bool isAsked, const char* what) {
    if (isAsked)
      throw Error(ErrorCode::badUse,
                  std::string("is a recording, whose ops ran on what is in it: ") + what +
                      " cannot be given; save the model with torch.export for that",
                  file.path);
  };
  refuse(!request.inputs.empty() || !request.numbers.empty() || !request.shapes.empty() || !request.data.batch.empty(),
         "other inputs");
  refuse(!request.data.weights.empty(), "other weights");
  refuse(request.order > 1, "another order");
  refuse(request.precision.has_value(), "another precision");
}

/// The joint: results, then a gradient for each input that has one.
Trace jointOf(const Computation& computation, const StepRecording& recording) {
  Trace joint = computation.trace;
  joint.kind = TraceKind::joint;
  joint.name = "joint";
  joint.resultCount = joint.outputs.size();
  joint.forwardCount = std::min(recording.forwardCount, joint.ops.size());
  joint.inputs.resize(joint.inputs.size() + computation.outputs.size());  // no cotangent flows in
  for (const auto& input : computation.inputs) {
    const auto found = recording.gradients.find(input.target);
    const bool isParameter = input.kind == InputKind::parameter && found != recording.gradients.end();
    joint.outputs.push_back(isParameter ? found->second : ValueId());
  }
  return joint;
}

/// A recorded step as an analysis: nothing is derived, all ops are those of the recording, in their order. The forward
/// is what ran before the first backward began, the backward is the rest: further micro-batches and the optimizer, too.
/// Throws Error(badUse) for a request that changes what ran: inputs, weights, sizes, another order.
std::shared_ptr<const Analysis> analysisOfRecording(ModelFile file, const DerivationRequest& request) {
  refuseChanges(file, request);
  auto analysis = std::make_shared<Analysis>();
  analysis->file = std::move(file);
  analysis->request = request;
  auto& document = *analysis->file.document;
  const auto& recording = *analysis->file.recording;
  const auto& computation = analysis->computation();
  analysis->device = withIndex(request.device.value_or(deviceOf(document, computation.trace.inputs)));
  if (request.device) relocate(document, analysis->device);
  analysis->request.inputs = analysis->file.sampleInputs;
  analysis->problems = analysis->file.problems;
  if (recording.ambiguous > 0)
    analysis->problems.push_back(
        {Problem::Severity::note,
         std::to_string(recording.ambiguous) + " backward ops have no link: more than one forward op could be theirs",
         {},
         -1});
  analysis->joint = jointOf(computation, recording);
  auto [forward, backward] = splitJoint(document, analysis->joint, computation.inputs.size());
  forward.history = backward.history = analysis->joint.history;
  analysis->forward = std::move(forward);
  analysis->backward = std::move(backward);
  analysis->gradients = RecordedLinks(document, recording).gradients();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    if (const auto gradient = analysis->joint.outputs[analysis->joint.resultCount + i])
      analysis->gradients[computation.inputs[i].value] = gradient;
  auto left = std::make_shared<LeftOut>();
  left->recording = analysis->file.recording;
  analysis->leftOut = std::move(left);
  analysis->times.read = analysis->file.seconds;
  analysis->links = OriginLinks(document, analysis->joint);
  analysis->document = analysis->file.document;
  return analysis;
}

/// Joint, forward and backward into `analysis`, whose document grows; what each pass made into `results`, where there
/// is one.
void derive(Analysis& analysis, const DerivationRequest& request, const Progress& progress,
            std::vector<PassResult>* results) {
  auto& document = *analysis.file.document;
  RuleCache cache;
  PassState state{analysis, document, request, cache, progress};
  if (!document.sizeSymbols().empty()) state.asRead = document;
  const auto seconds = runPasses(state, results);
  analysis.times.joint = seconds.joint;
  analysis.times.split = seconds.split;
  analysis.problems.insert(analysis.problems.end(), state.problems.begin(), state.problems.end());
  auto& result = state.result;
  analysis.joint = std::move(result.joint);
  analysis.forward = std::move(state.halves.forward);
  analysis.backward = std::move(state.halves.backward);
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
  const auto& computation = analysis.computation();
  for (std::size_t i = 0; i < computation.outputs.size(); ++i)
    if (auto id = analysis.joint.inputs[computation.inputs.size() + i])
      cotangents[userOutputPosition(computation, i)] = document.meta(id);
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

/// The request as it was used: chooseInputs() and the derivation add the inputs, numbers and cotangents.
DerivationRequest used(DerivationRequest request) {
  request.inputs.clear();
  request.numbers.clear();
  request.shapes.clear();
  request.cotangents.clear();
  return request;
}

std::shared_ptr<Analysis> analyseOnce(ModelFile file, const DerivationRequest& request, const Progress& progress,
                                      std::shared_ptr<const Analysis> of, std::vector<PassResult>* results = nullptr) {
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
  const bool runnable =
      std::ranges::none_of(analysis->problems, [](const Problem& p) { return p.severity == Problem::Severity::error; });
  try {
    if (runnable) {
      const MemoryBudget budget(openingMemory(analysis->file.identity.size));
      chooseInputs(*analysis, request.data.batch.empty() ? request : withBatch(*analysis, request, progress));
      filledResults(*analysis, *analysis->file.document);  // what does not fit is said before anything is derived
      derive(*analysis, request, progress, results);
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

/// Of the order below, from what a run of this order was given: its cotangents flow in by the names that they have as
/// inputs here. Those of orders between are drawn, and given later.
static TensorMap cotangentsBelow(const DerivationRequest& request, const ModelFile& file) {
  TensorMap cotangents;
  if (request.order > 2) return cotangents;
  for (std::size_t i = 0; i < file.computation.outputs.size(); ++i)
    if (const auto position = userOutputPosition(file.computation, i); !position.empty())
      if (const auto found = request.higherInputs.find("cotangent_" + position); found != request.higherInputs.end())
        cotangents.emplace(position, found->second);
  return cotangents;
}

/// What a run of this order was given, for the inputs and results of what is differentiated.
static void giveHigher(const DerivationRequest& request, const ModelFile& model, DerivationRequest& outer) {
  std::set<std::string> positions;
  for (const auto& input : model.computation.inputs)
    if (const auto found = request.higherInputs.find(input.name);
        input.kind == InputKind::user && found != request.higherInputs.end())
      outer.inputs.insert(*found);
  for (std::size_t i = 0; i < model.computation.outputs.size(); ++i)
    positions.insert(userOutputPosition(model.computation, i));
  for (const auto& [position, tensor] : request.cotangents)
    if (!positions.contains(position))
      throw Error(ErrorCode::badInput, fmt::format("cot.{} belongs to no output of order {}", position, request.order),
                  model.path);
  outer.cotangents = request.cotangents;
  outer.exactCotangents = request.exactCotangents;
}

std::shared_ptr<const Analysis> analyse(ModelFile file, const DerivationRequest& request, const Progress& progress) {
  if (file.recording) return analysisOfRecording(std::move(file), request);
  if (request.order <= 1 && !request.higherInputs.empty())
    throw Error(ErrorCode::badUse,
                "the inputs are of gradients of gradients, into which cotangents flow: give --order as they were made",
                file.path);
  if (request.order <= 1) return analyseOnce(std::move(file), request, progress, nullptr);
  auto inner = request;
  if (!request.higherInputs.empty()) {
    inner.cotangents = cotangentsBelow(request, file);
    inner.exactCotangents = request.exactCotangents && !inner.cotangents.empty();
    if (request.order == 2) inner.higherInputs.clear();
  }
  inner.order = request.order - 1;
  inner.createGraph = true;
  inner.partition = {};
  inner.partition.regions = false;  // a draw that is replayed would become one of its own
  auto of = analyse(std::move(file), inner, progress);
  if (!of->derived()) return of;
  DerivationRequest outer{
      .seed = request.seed, .partition = request.partition, .createGraph = request.createGraph, .rules = request.rules};
  outer.filled = request.filled;
  outer.device = request.device;
  auto model = asModel(*of, request.again);
  if (!request.higherInputs.empty()) giveHigher(request, model, outer);
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
  request.partition = analysis.request.partition;
  const auto deriveOn = [&](Document& document, RuleCache& cache) {
    PassState state{analysis, document, request, cache};
    return runPasses(state);
  };
  // A cache belongs to one document; a copy of the document it was filled on knows all its ids.
  RuleCache warm;
  Document seen = *analysis.document;
  deriveOn(seen, warm);
  for (int i = 0; i < repeats; ++i) {
    RuleCache cold;
    Document document = *analysis.document;
    const auto seconds = deriveOn(document, cold);
    times.joint.push_back(seconds.joint);
    times.split.push_back(seconds.split);
    Document again = seen;
    times.jointWarm.push_back(deriveOn(again, warm).joint);
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
                                            std::vector<PassResult>* results, const Progress& progress) {
  if (analysis.file.recording)
    throw Error(ErrorCode::badUse, "is a recording: its ops are those that ran, and nothing is derived",
                analysis.file.path);
  auto file = analysis.file;  // tensors are shared; the document is copied, as deriving makes it grow
  file.document = std::make_shared<Document>(*analysis.document);
  file.printed = nullptr;
  auto again = analyseOnce(std::move(file), request, progress, analysis.differentiated, results);
  again->inputSource = analysis.inputSource;  // where they came from at first, not that they were handed on
  again->sessionPath = analysis.sessionPath;
  again->marks = analysis.marks;
  return again;
}

std::string errorsOf(const std::vector<Problem>& problems) {
  std::string text;
  for (const auto& p : problems)
    if (p.severity == Problem::Severity::error)
      text += (text.empty() ? "" : "; ") + (p.place.empty() ? "" : p.place + ": ") + p.message;
  return text;
}

}  // namespace retrograd
