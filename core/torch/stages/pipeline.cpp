#include "core/torch/stages/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/cut/as_read.h"
#include "core/cut/stage_facts.h"
#include "core/derivation/result_names.h"
#include "core/derivation/sizes.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/execution/device.h"
#include "core/torch/stages/boundary.h"
#include "core/torch/stages/stage_run.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

using Key = std::pair<int, std::size_t>;  ///< an output: source stage and position there

bool isUser(const OutputSpec& output) { return output.kind == OutputKind::user || output.kind == OutputKind::loss; }

/// Position among the user outputs of the whole model, by index into its outputs.
std::map<std::size_t, std::string> positionsOf(const Computation& computation) {
  std::map<std::size_t, std::string> positions;
  std::size_t count = 0;
  for (std::size_t i = 0; i < computation.outputs.size(); ++i)
    if (isUser(computation.outputs[i])) positions[i] = std::to_string(count++);
  return positions;
}

/// Gradients on their way back over the borders.
class Gradients {
 public:
  explicit Gradients(const Pipeline& pipeline)
      : pipeline_(pipeline), positions_(positionsOf(pipeline.whole->computation())) {}

  /// Of the outputs of stage `s`, by user output as text: what outside gives, then what later stages sent. None where
  /// nothing did.
  TensorMap cotangents(std::size_t s) const {
    TensorMap found;
    const auto& outputs = pipeline_.split.stages[s].outputs;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const auto name = std::to_string(k);
      for (auto result : outputs[k].results)
        if (const auto given = pipeline_.whole->request.cotangents.find(positions_.at(result));
            given != pipeline_.whole->request.cotangents.end())
          addTo(found, name, given->second);
      if (const auto sent = back_.find({static_cast<int>(s), k}); sent != back_.end()) addTo(found, name, sent->second);
    }
    return found;
  }

  /// Inputs of the model that it returns as they are: the caller has them, and their cotangents are gradients.
  void takeReturnedInputs(RunResult& result, std::map<std::size_t, TensorData>& results) const {
    const auto& whole = *pipeline_.whole;
    const auto& computation = whole.computation();
    for (const auto& [output, position] : positions_)
      for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
        const auto& input = computation.inputs[i];
        const auto id = computation.trace.inputs[i];
        if (!id || id != computation.outputs[output].value || results.contains(output)) continue;
        if (const auto* tensor = inputData(whole, i)) results[output] = *tensor;
        const auto cotangent = whole.request.cotangents.find(position);
        if (cotangent != whole.request.cotangents.end() && whole.document->value(id).requiresGrad)
          addTo(result.gradients,
                input.kind == InputKind::user ? "in." + input.name : "p." + firstName(computation, input.target),
                cotangent->second);
      }
  }

  /// Takes what the backward of stage `s` gives: to the stages its inputs came from, and to the caller.
  void take(std::size_t s, const TensorMap& gradients, TensorMap& result) {
    const auto& computation = pipeline_.whole->computation();
    const auto& stage = pipeline_.stages[s]->computation();
    const auto& split = pipeline_.split.stages[s];
    for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
      const auto& input = stage.inputs[i];
      const bool sent = i >= split.held.size();
      const auto it = gradients.find(sent ? "in." + input.name : "p." + input.target);
      if (it == gradients.end()) continue;
      if (sent && split.inputs[i - split.held.size()].source >= 0) {
        const auto& from = split.inputs[i - split.held.size()];
        addTo(back_, Key(from.source, from.output), it->second);
      } else {
        addTo(result, sent ? "in." + input.name : "p." + firstName(computation, input.target), it->second);
      }
    }
  }

 private:
  const Pipeline& pipeline_;
  std::map<std::size_t, std::string> positions_;
  std::map<Key, TensorData> back_;
};

/// Gives the stages what they receive as sample inputs, and says which of it needs a gradient.
void fillInputs(std::vector<StageModel>& stages, const PipelineSplit& split, const Analysis& whole,
                const BorderValues& border, const std::vector<char>& differentiated) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    auto& file = stages[s].file;
    for (std::size_t i = 0; i < split.stages[s].inputs.size(); ++i) {
      const auto& from = split.stages[s].inputs[i];
      auto& spec = file.computation.inputs[split.stages[s].held.size() + i];
      const Key key(from.source, from.output);
      if (from.source >= 0) {
        spec.requiresGrad = border.requiresGrad.contains(key);
        if (const auto tensor = border.tensors.find(key); tensor != border.tensors.end())
          file.sampleInputs.insert_or_assign(spec.name, tensor->second);
        if (const auto number = border.numbers.find(key); number != border.numbers.end())
          file.sampleNumbers.insert_or_assign(spec.name, number->second);
      } else {
        for (std::size_t k = 0; k < whole.computation().inputs.size(); ++k)
          if (whole.computation().inputs[k].kind == InputKind::user && whole.computation().inputs[k].name == spec.name)
            spec.requiresGrad = differentiated[k];
        if (const auto tensor = whole.request.inputs.find(spec.name); tensor != whole.request.inputs.end())
          file.sampleInputs.insert_or_assign(spec.name, tensor->second);
        if (const auto number = whole.request.numbers.find(spec.name); number != whole.request.numbers.end())
          file.sampleNumbers.insert_or_assign(spec.name, number->second);
      }
      if (spec.value) file.document->value(spec.value).requiresGrad = spec.requiresGrad;
    }
  }
}

DerivationRequest requestFor(const Analysis& whole, const ModelFile& stage, Device device, TensorMap cotangents) {
  DerivationRequest options{
      .inputs = stage.sampleInputs, .numbers = stage.sampleNumbers, .cotangents = std::move(cotangents)};
  options.exactCotangents = true;
  options.seed = whole.request.seed;
  options.partition = whole.request.partition;
  options.rules = whole.request.rules;
  options.device = device;
  return options;
}

/// Where the backward of an op reads memory that a later stage writes to, behind autograd's back, the whole model reads
/// what is written there. The stage has a memory of its own and cannot.
void refuseLateReads(const Analysis& whole, const PipelineSplit& split) {
  if (whole.lateReads.empty()) return;
  const auto& document = *whole.document;
  std::map<BoundSymbolId, std::size_t> stageOf;
  for (std::size_t s = 0; s < split.stages.size(); ++s)
    for (auto op : split.stages[s].ops) stageOf[op] = s;
  const auto find = [&](BoundSymbolId op) {
    while (op && !stageOf.contains(op)) op = document.boundSymbol(op).parent;  // of a body: the op that runs it
    return op;
  };
  for (const auto& [read, written] : whole.lateReads) {
    const auto reader = find(read), writer = find(written);
    if (!reader || !writer || stageOf[reader] >= stageOf[writer]) continue;
    throw Error(ErrorCode::badUse,
                fmt::format("its backward reads memory that #{} ({}) in stage {} writes to; move the cut so that both "
                            "fall into one stage",
                            document.text(document.boundSymbol(writer).name), document.opName(writer), stageOf[writer]),
                fmt::format("#{} ({}) in stage {}", document.text(document.boundSymbol(reader).name),
                            document.opName(reader), stageOf[reader]));
  }
}

/// A stage is derived for what it does first: where data decide, they are those of a generator that starts from the
/// seed. Where earlier stages draw, the stage's own draws are others when it runs, and what they decide may be, too.
void refuseDrawnDecisions(const Pipeline& pipeline) {
  bool drew = false;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const bool draws = drawsAnything(*pipeline.stages[s]);
    if (drew && draws && !pipeline.stages[s]->dataDependent.empty())
      throw Error(ErrorCode::badUse,
                  fmt::format("what it does depends on data ({}), and it draws random numbers after another stage drew "
                              "some; move the cut so that all draws fall into "
                              "one stage",
                              pipeline.stages[s]->dataDependent.front()),
                  fmt::format("stage {}", s));
    drew = drew || draws;
  }
}

std::shared_ptr<const Analysis> deriveStage(ModelFile file, const DerivationRequest& options, std::size_t s,
                                            const Progress& progress) {
  auto analysis = analyse(std::move(file), options, progress);
  if (analysis->derived()) return analysis;
  throw Error(ErrorCode::unsupportedOp, "its backward could not be derived: " + errorsOf(analysis->problems),
              fmt::format("stage {}", s));
}

}  // namespace

std::string firstName(const Computation& computation, const std::string& parameter) {
  for (const auto& input : computation.inputs) {
    if (input.kind != InputKind::parameter) continue;
    const bool named = input.target == parameter || std::ranges::find(input.aliases, parameter) != input.aliases.end();
    if (named) return input.target;
  }
  return parameter;
}

std::vector<char> differentiatedInputs(const ModelFile& model, const Analysis& whole) {
  std::map<std::string, bool> ofWhole;
  for (std::size_t i = 0; i < whole.computation().inputs.size(); ++i)
    if (const auto value = whole.computation().trace.inputs[i])
      ofWhole[whole.computation().inputs[i].name] = whole.document->value(value).requiresGrad;
  std::vector<char> wanted;
  for (const auto& input : model.computation.inputs)
    wanted.push_back(input.kind == InputKind::user ? ofWhole[input.name] : input.requiresGrad);
  return wanted;
}

Pipeline derivePipeline(ModelFile model, std::shared_ptr<const Analysis> whole, PipelineSplit split,
                        const Progress& progress) {
  if (whole->leftOut)
    throw Error(ErrorCode::unsupportedOp,
                "stages of a model with opaque ops cannot be run or checked: " +
                    opaqueOpsText(*whole->document, whole->computation().trace.ops),
                model.path);
  refuseLateReads(*whole, split);
  Pipeline pipeline{std::move(whole), std::move(split), {}, {}, {}};
  const auto count = pipeline.split.stages.size();
  model.weights = pipeline.whole->file.weights;  // a text's are drawn when it is derived
  const auto differentiated = differentiatedInputs(model, *pipeline.whole);
  std::vector<StageModel> stages;
  for (std::size_t s = 0; s < count; ++s) {
    stages.push_back(stageModel(model, pipeline.split, s, lookupSymbol));
    if (!model.document->sizeSymbols().empty())
      setSizes(*stages.back().file.document, pipeline.whole->file.document->sizeHints());
  }
  fillInputs(stages, pipeline.split, *pipeline.whole,
             borderValues(*pipeline.whole, pipeline.split, stages, differentiated), differentiated);
  pipeline.stages.resize(count);
  Gradients gradients(pipeline);
  TensorMap ignored;
  for (std::size_t s = count; s-- > 0;) {
    progress.check();
    const auto device = pipeline.split.stages[s].device.value_or(pipeline.whole->device);
    auto request = requestFor(*pipeline.whole, stages[s].file, device, gradients.cotangents(s));
    const bool isHere = deviceStatus(device).available;
    auto twin = isHere ? ModelFile() : copyOf(stages[s].file);
    pipeline.stages[s] = deriveStage(std::move(stages[s].file), request, s, progress);
    // Earlier stages are derived for the very gradients that they will get: their strides, and their elements where a
    // formula reads them. For a device that is not here the CPU makes them.
    auto run = pipeline.stages[s];
    if (!isHere) {
      request.device = Device();
      run = deriveStage(std::move(twin), request, s, progress);
    }
    gradients.take(s, runJoint(*run).gradients, ignored);
  }
  refuseDrawnDecisions(pipeline);
  for (auto& stage : stages) {
    pipeline.originOf.push_back(std::move(stage.originOf));
    pipeline.valueOf.push_back(std::move(stage.valueOf));
  }
  return pipeline;
}

RunResult runPipeline(const Pipeline& pipeline, const Progress& progress) {
  const auto count = pipeline.stages.size();
  const auto& computation = pipeline.whole->computation();
  RunResult result;
  std::map<Key, TensorData> sent;
  std::map<std::size_t, TensorData> results;  // by output of the whole model
  std::vector<std::shared_ptr<StageSaved>> saved(count);
  auto generator = seededGenerator(pipeline.whole->request.seed);
  for (std::size_t s = 0; s < count; ++s) {
    progress.check();
    const auto& split = pipeline.split.stages[s];
    TensorMap inputs;
    for (std::size_t i = 0; i < split.inputs.size(); ++i)
      if (const auto it = sent.find({split.inputs[i].source, split.inputs[i].output}); it != sent.end())
        inputs[pipeline.stages[s]->computation().inputs[split.held.size() + i].name] = it->second;
    auto forward = runStageForward(*pipeline.stages[s], inputs, generator);
    for (std::size_t k = 0; k < split.outputs.size(); ++k) {
      if (!forward.outputs.at(k)) continue;
      if (!split.outputs[k].destinations.empty()) sent[{static_cast<int>(s), k}] = sentTensor(*forward.outputs[k]);
      for (auto output : split.outputs[k].results) results[output] = *forward.outputs[k];
    }
    for (const auto& [name, tensor] : forward.mutated) result.mutated.insert_or_assign(name, tensor);
    generator = forward.generator;
    saved[s] = std::move(forward.saved);
  }
  Gradients gradients(pipeline);
  gradients.takeReturnedInputs(result, results);
  for (std::size_t s = count; s-- > 0;) {
    progress.check();
    const auto backward = runStageBackward(*pipeline.stages[s], *saved[s], gradients.cotangents(s), generator);
    generator = backward.generator;
    saved[s].reset();
    gradients.take(s, backward.gradients, result.gradients);
  }
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    if (!isUser(computation.outputs[i])) continue;
    const auto it = results.find(i);
    result.outputs.push_back(it == results.end() ? std::nullopt : std::optional(it->second));
  }
  return result;
}

}  // namespace retrograd
