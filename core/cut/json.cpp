#include "core/cut/json.h"

namespace retrograd {
namespace {

using Json = nlohmann::ordered_json;

std::string nameOf(const ModelFile& model, ValueId value) {
  for (const auto& input : model.computation.inputs)
    if (input.value == value) return input.target.empty() ? input.name : input.target;
  return model.document->displayName(value);
}

std::vector<StageWeight> weightsOf(const ModelFile& model, const PipelineSplit& split, std::size_t s, InputKind kind) {
  std::vector<StageWeight> weights;
  const auto& stage = split.stages.at(s);
  const auto& document = *model.document;
  const auto names = parameterNames(document, model.computation, stage);
  for (auto i : stage.held) {
    const auto& input = model.computation.inputs[i];
    if (input.kind != kind) continue;
    weights.push_back({kind == InputKind::parameter ? names.at(i) : input.target,
                       document.isTensor(input.value) ? document.meta(input.value).bytes() : 0});
  }
  return weights;
}

Json namesOf(const std::vector<StageWeight>& weights) {
  auto names = Json::array();
  for (const auto& weight : weights) names.push_back(weight.name);
  return names;
}

Json stageJson(const ModelFile& model, const PipelineSplit& split, std::size_t s) {
  const auto& stage = split.stages[s];
  Json json = Json::object();
  json["index"] = s;
  json["parameters"] = namesOf(stageParameters(model, split, s));
  json["buffers"] = namesOf(stageBuffers(model, split, s));
  json["inputs"] = Json::array();
  for (const auto& input : stage.inputs) json["inputs"].push_back(nameOf(model, input.value));
  json["outputs"] = Json::array();
  for (const auto& output : stage.outputs) json["outputs"].push_back(nameOf(model, output.value));
  json["ops"] = stage.ops.size();
  if (stage.device) json["device"] = toString(*stage.device);
  return json;
}

}  // namespace

EdgeDescription describeEdge(const ModelFile& model, const PipelineEdge& edge) {
  const auto& document = *model.document;
  EdgeDescription described{nameOf(model, edge.value), "torch.int64", {}, 8};
  if (document.isTensor(edge.value)) {
    const auto& meta = document.meta(edge.value);
    described.dtype = "torch." + std::string(torchName(meta.dtype));
    described.shape = meta.sizes;
    described.bytes = meta.bytes();
  }
  return described;
}

std::vector<StageWeight> stageParameters(const ModelFile& model, const PipelineSplit& split, std::size_t stage) {
  return weightsOf(model, split, stage, InputKind::parameter);
}
std::vector<StageWeight> stageBuffers(const ModelFile& model, const PipelineSplit& split, std::size_t stage) {
  return weightsOf(model, split, stage, InputKind::buffer);
}

Json pipelineJson(const ModelFile& model, const PipelineSplit& split, const std::vector<std::string>& notes) {
  Json json = Json::object();
  json["stages"] = Json::array();
  for (std::size_t s = 0; s < split.stages.size(); ++s) json["stages"].push_back(stageJson(model, split, s));
  json["edges"] = Json::array();
  for (const auto& edge : split.edges) {
    const auto described = describeEdge(model, edge);
    json["edges"].push_back({{"source", edge.source},
                             {"output", edge.output},
                             {"destination", edge.destination},
                             {"name", described.name},
                             {"dtype", described.dtype},
                             {"shape", described.shape},
                             {"bytes", described.bytes}});
  }
  json["replicated"] = Json::array();
  json["transmitted"] = Json::array();
  for (const auto& shared : split.shared) {
    Json stages = Json::object();
    for (const auto& [stage, name] : shared.nameIn) stages[std::to_string(stage)] = name;
    json[shared.use == MultiUse::replicate ? "replicated" : "transmitted"].push_back(
        {{"names", shared.names}, {"stages", stages}, {"bytes", shared.bytes}});
  }
  json["notes"] = notes;
  return json;
}

}  // namespace retrograd
