#include "core/formats/pt2/pt2_signature.h"

#include "core/base/error.h"

namespace retrograd::pt2 {
namespace {

struct InputForm {
  std::string_view key, target;
  InputKind kind;
};
constexpr InputForm inputForms[] = {
    {"user_input", "", InputKind::user},
    {"parameter", "parameter_name", InputKind::parameter},
    {"buffer", "buffer_name", InputKind::buffer},
    {"tensor_constant", "tensor_constant_name", InputKind::constant},
    {"custom_obj", "custom_obj_name", InputKind::object},
    {"token", "", InputKind::token},
    {"constant_input", "", InputKind::user},
};

struct OutputForm {
  std::string_view key, target;
  OutputKind kind;
};
constexpr OutputForm outputForms[] = {
    {"user_output", "", OutputKind::user},
    {"loss_output", "", OutputKind::loss},
    {"buffer_mutation", "buffer_name", OutputKind::bufferMutation},
    {"parameter_mutation", "parameter_name", OutputKind::parameterMutation},
    {"user_input_mutation", "user_input_name", OutputKind::inputMutation},
    {"gradient_to_parameter", "parameter_name", OutputKind::gradient},
    {"gradient_to_user_input", "user_input_name", OutputKind::gradient},
    {"token", "", OutputKind::token},
};

/// A number or None that export fixed an input to.
bool readLiteral(const Json& argument, Argument& literal) {
  if (!argument.isObject() || argument.members().size() != 1) return false;
  const auto& [kind, value] = argument.only();
  if (kind == "as_int") literal = Argument::ofInt(value.integer());
  else if (kind == "as_float") literal = Argument::ofReal(value.number());
  else if (kind == "as_bool") literal = Argument::ofBool(value.boolean());
  else if (kind == "as_string") literal = Argument::ofString(std::string(value.text()));
  else if (kind == "as_none") literal = Argument::ofNone();
  else return false;
  return true;
}

/// Other names under which the archive lists the same tensor of the same record.
void groupAliases(InputSpec& spec,
                  const std::multimap<std::string_view, const std::pair<const std::string, Weight>*>& byRecord,
                  const Weight& own) {
  const auto [begin, end] = byRecord.equal_range(own.record);
  for (auto it = begin; it != end; ++it) {
    const auto& [name, other] = *it->second;
    if (name != spec.target && other.tensor.meta == own.tensor.meta) spec.aliases.push_back(name);
  }
}

void attachWeight(InputSpec& spec, const WeightTable& weights,
                  const std::multimap<std::string_view, const std::pair<const std::string, Weight>*>& byRecord) {
  const Weight* weight = weights.find(spec.target);
  if (!weight) badInput("the archive holds no data for '" + spec.target + "'");
  spec.storageKey = weight->record;
  spec.requiresGrad =
      spec.kind == InputKind::parameter && weight->requiresGrad && isDifferentiable(weight->tensor.meta.dtype);
  groupAliases(spec, byRecord, *weight);
}

}  // namespace

std::vector<InputSpec> readInputSpecs(const Json& signature, const Json& graph, const WeightTable& weights,
                                      std::map<std::string, Argument>& constants) {
  std::multimap<std::string_view, const std::pair<const std::string, Weight>*> byRecord;
  for (const auto& entry : weights.weights) byRecord.emplace(entry.second.record, &entry);
  for (const auto& entry : weights.constants) byRecord.emplace(entry.second.record, &entry);
  const auto inputs = graph.at("inputs").items();
  std::vector<InputSpec> specs;
  for (const auto& item : signature.at("input_specs").items()) {
    const auto& [key, value] = item.only();
    const InputForm* form = nullptr;
    for (const auto& candidate : inputForms)
      if (candidate.key == key) form = &candidate;
    if (!form) badInput("an input of unknown kind '" + std::string(key) + "'; the file may be of a newer PyTorch");
    InputSpec spec;
    spec.kind = form->kind;
    const Json& argument = key == "constant_input" ? value : value.at("arg");
    spec.name = valueName(argument);
    if (spec.name.empty()) spec.name = "input_" + std::to_string(specs.size());  // a bare literal has no name
    if (Argument literal; form->kind == InputKind::user) {
      const bool fixed = readLiteral(key == "constant_input" ? value.at("value") : argument, literal);
      if (fixed) constants[spec.name] = literal;
    }
    if (!form->target.empty()) spec.target = value.at(form->target).text();
    if (const Json* persistent = value.find("persistent")) spec.persistent = persistent->boolean();
    if (spec.kind == InputKind::parameter || spec.kind == InputKind::buffer || spec.kind == InputKind::constant)
      attachWeight(spec, weights, byRecord);
    specs.push_back(std::move(spec));
  }
  if (specs.size() != inputs.size())
    badInput("the graph has " + std::to_string(inputs.size()) + " inputs but the signature describes " +
             std::to_string(specs.size()));
  return specs;
}

std::vector<OutputSpec> readOutputSpecs(const Json& signature, const GraphBody& body) {
  std::vector<OutputSpec> specs;
  for (const auto& item : signature.at("output_specs").items()) {
    const auto& [key, value] = item.only();
    const OutputForm* form = nullptr;
    for (const auto& candidate : outputForms)
      if (candidate.key == key) form = &candidate;
    if (!form) badInput("an output of unknown kind '" + std::string(key) + "'; the file may be of a newer PyTorch");
    if (specs.size() >= body.outputs.size()) badInput("the signature describes more outputs than the graph has");
    OutputSpec spec;
    spec.kind = form->kind;
    if (!form->target.empty()) spec.target = value.at(form->target).text();
    const Argument& output = body.outputs[specs.size()];
    if (output.kind == Argument::Kind::operand) spec.value = body.outputValues[output.integer];
    else spec.literal = output;
    const auto name = valueName(value.at("arg"));
    const auto actual = body.outputNames[specs.size()];
    if (name != actual)
      badInput("output '" + std::string(actual) + "' of the graph is '" + std::string(name) + "' in the signature");
    specs.push_back(std::move(spec));
  }
  if (specs.size() != body.outputs.size()) badInput("the signature describes fewer outputs than the graph has");
  return specs;
}

void checkWeights(const std::vector<InputSpec>& specs, const WeightTable& weights, const Document& document) {
  for (const auto& spec : specs) {
    const Weight* weight = spec.storageKey.empty() ? nullptr : weights.find(spec.target);
    if (!weight) continue;
    if (!spec.value || !document.isTensor(spec.value))
      badInput("is not a tensor in the graph", "'" + spec.target + "'");
    const auto& graph = document.meta(spec.value);
    const auto& stored = weight->tensor.meta;
    if (graph.dtype != stored.dtype || graph.sizes != stored.sizes)
      badInput("is " + typeComment(graph) + " in the graph but " + typeComment(stored) + " in " + weight->record,
               "'" + spec.target + "'");
  }
}

}  // namespace retrograd::pt2
