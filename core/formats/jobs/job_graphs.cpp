#include "core/formats/jobs/job_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/fx/unrolled_loops.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/jobs/shared_draws.h"

namespace retrograd {
namespace {

using Kind = fx::Expression::Kind;

fx::Graph read(const jobs::JobLog& log, const jobs::GraphRecord& record) {
  return fx::readGraph(jobs::payloadText(log, record.payload), jobs::placeOf(log, record.payload));
}

std::string nameOf(const fx::Graph& graph, const fx::Expression& value) {
  return value.is(Kind::value) ? graph.valueName(value.integer) : std::string();
}

const fx::Type* typeOf(const fx::Graph& graph, const fx::Expression& value) {
  if (!value.is(Kind::value)) return nullptr;
  const auto type = graph.valueType(value.integer);
  return type == fx::noIndex ? nullptr : &graph.types[type];
}

/// Which input of Dynamo's graph an input of the forward is: by its descriptor, else by the number in its name.
std::optional<std::size_t> dynamoIndex(const fx::Input& input) {
  if (const auto index = input.descriptor.plainIndex(); index && *index >= 0) return static_cast<std::size_t>(*index);
  if (!input.descriptor.text.empty()) return std::nullopt;
  std::string_view name = input.name;
  if (name.starts_with("primals_")) {
    const auto number = numberIn<std::size_t>(name.substr(8));
    return number && *number > 0 ? std::optional(*number - 1) : std::nullopt;
  }
  if (!name.starts_with("arg") || !name.ends_with("_1")) return std::nullopt;  // "arg0_1" of an inference graph
  return numberIn<std::size_t>(name.substr(3, name.size() - 5));
}

/// Whether no backward belongs to the graph: it is for inference, or has its backward inside.
bool isWhole(const JobGraphs& graphs) {
  return graphs.computed == jobs::GraphKind::inference || graphs.computed == jobs::GraphKind::other;
}

/// A gradient, also that of a part of a tensor subclass.
bool isGradient(const fx::Output& output) { return output.descriptor.text.find("GradAOTOutput(") != std::string::npos; }

bool isOfBackward(const fx::Output& output) {
  return output.descriptor.kind() == "SavedForBackwardsAOTOutput" || isGradient(output);
}

/// What a descriptor says of a part of a tensor subclass: parts of inputs, of outputs and of their gradients are
/// described alike but for this.
std::string plainDescriptor(std::string text) {
  for (const std::string_view end : {"AOTInput", "AOTOutput"})
    for (std::size_t at; (at = text.find(fmt::format("SubclassGetAttr{}(", end))) != std::string::npos;)
      text.replace(at, std::string_view("SubclassGetAttr").size() + end.size(), "Part");
  for (const std::string_view around : {"TangentAOTInput(output=", "GradAOTOutput(grad_of="}) {
    const auto at = text.find(around);
    if (at == std::string::npos) continue;
    text.erase(at, around.size());
    int depth = 1;
    auto close = at;
    for (; close < text.size() && depth > 0; ++close) depth += text[close] == '(' ? 1 : text[close] == ')' ? -1 : 0;
    if (depth == 0) text.erase(close - 1, 1);
  }
  return text;
}

/// "_local_tensor" of "SubclassGetAttrAOTInput(base=..., attr='_local_tensor')"; empty for others.
std::string partOf(const fx::Descriptor& descriptor) {
  if (descriptor.kind() != "SubclassGetAttrAOTInput" || !descriptor.expression) return {};
  const auto* attribute = descriptor.expression->keyword("attr");
  return attribute != nullptr && attribute->is(Kind::string) ? attribute->text : std::string();
}

/// Gradients one by one as the inputs are: of inputs that are sizes or parts without a gradient a graph has none.
void alignGradients(const fx::Graph& forward, std::size_t first, fx::Graph& graph) {
  const auto inputs = primalsOf(forward);
  if (graph.outputs.size() < first || graph.outputs.size() - first == inputs ||
      std::none_of(graph.outputs.begin(), graph.outputs.end(), isGradient))
    return;
  std::unordered_map<std::string, const fx::Output*> gradients;
  for (const auto& output : graph.outputs)
    if (isGradient(output)) gradients.emplace(plainDescriptor(output.descriptor.text), &output);
  std::vector<fx::Output> aligned(graph.outputs.begin(), graph.outputs.begin() + first);
  for (const auto& input : forward.inputs) {
    if (isTangent(input) || isGeneratorState(input)) continue;
    const auto found = gradients.find(plainDescriptor(input.descriptor.text));
    aligned.push_back(found == gradients.end() ? fx::Output() : *found->second);
  }
  graph.outputs = std::move(aligned);
}

/// Throws what a log that lacks a graph is refused with.
[[noreturn]] void refuse(const jobs::JobLog& log, const jobs::Attempt& attempt, std::string_view missing) {
  const auto why =
      attempt.find(jobs::GraphKind::inference) ? ": it was compiled for inference, without gradients"
      : missing == "forward" && attempt.find(jobs::GraphKind::dynamo) && !attempt.find(jobs::GraphKind::joint)
          ? ", only Dynamo's graph: its backend made none, the compile failed, or its result came from a cache"
          : "";
  badInput(fmt::format("the log has no {} graph of this compile{}", missing, why), log.path);
}

void unrollLoops(JobGraphs& graphs) {
  const auto sizeOf = [&](const std::string& text) { return evaluateSize(text, graphs.sizes); };
  graphs.forward = fx::withUnrolledLoops(graphs.forward, sizeOf);
  graphs.backward = fx::withUnrolledLoops(graphs.backward, sizeOf);
  if (graphs.joint) graphs.joint = fx::withUnrolledLoops(*graphs.joint, sizeOf);
}

void bindSources(const jobs::JobLog& log, const jobs::Attempt& attempt, JobGraphs& graphs) {
  graphs.sources.resize(graphs.forward.inputs.size());
  if (!graphs.dynamo) return;
  const auto bound = jobs::bindInputs(*graphs.dynamo, jobs::describedInputs(log, attempt));
  for (std::size_t i = 0; i < graphs.sources.size(); ++i) {
    const auto index = dynamoIndex(graphs.forward.inputs[i]);
    if (!index || *index >= bound.size()) continue;
    graphs.sources[i] = bound[*index];
    if (const auto part = partOf(graphs.forward.inputs[i].descriptor); !part.empty() && graphs.sources[i]) {
      graphs.sources[i]->name += "." + part;  // of a tensor subclass
      graphs.sources[i]->path.push_back(part);
    }
  }
}

/// The forward's outputs that are the program's come first; the others are saved, or gradients in a joint graph.
void countResults(JobGraphs& graphs) {
  const auto& outputs = graphs.forward.outputs;
  graphs.results = outputs.size();
  if (isWhole(graphs)) return;
  // Where PyTorch changed the graph for draws that are repeated, it wrote the outputs without descriptors.
  if (std::any_of(outputs.begin(), outputs.end(),
                  [](const fx::Output& output) { return !output.descriptor.text.empty(); })) {
    graphs.results =
        static_cast<std::size_t>(std::find_if(outputs.begin(), outputs.end(), isOfBackward) - outputs.begin());
    return;
  }
  if (graphs.backward.inputs.empty()) {  // the joint has a gradient for each input behind the results
    const auto gradients = primalsOf(graphs.forward);
    if (graphs.joint)
      graphs.results =
          std::min(outputs.size(), graphs.joint->outputs.size() - std::min(graphs.joint->outputs.size(), gradients));
    return;
  }
  const auto tangents =
      static_cast<std::size_t>(std::count_if(graphs.backward.inputs.begin(), graphs.backward.inputs.end(), isTangent));
  const auto saved = graphs.backward.inputs.size() - tangents -
                     static_cast<std::size_t>(
                         std::count_if(graphs.backward.inputs.begin(), graphs.backward.inputs.end(), isGeneratorState));
  if (saved > outputs.size()) badInput("the backward reads more than the forward gives", graphs.backwardPlace);
  graphs.results = outputs.size() - saved;
}

/// Where PyTorch wrote the forward's outputs without descriptors, the joint graph describes its results.
void describeResults(JobGraphs& graphs) {
  auto& outputs = graphs.forward.outputs;
  if (!graphs.joint || graphs.joint->outputs.size() < graphs.results) return;
  for (std::size_t i = 0; i < graphs.results; ++i)
    if (outputs[i].descriptor.text.empty()) outputs[i].descriptor = graphs.joint->outputs[i].descriptor;
}

/// The result that a tangent's descriptor names; the number of results where it names none.
std::size_t resultOf(const JobGraphs& graphs, const fx::Input& tangent) {
  const auto wanted = plainDescriptor(tangent.descriptor.text);
  for (std::size_t i = 0; i < graphs.results && !wanted.empty(); ++i)
    if (plainDescriptor(graphs.forward.outputs[i].descriptor.text) == wanted) return i;
  return graphs.results;
}

/// The output that a tangent is for says so; before PyTorch 2.9 the last outputs of the tangents' types are taken, in
/// order.
void pairTangents(JobGraphs& graphs) {
  const auto& forward = graphs.forward;
  std::size_t before = graphs.results;
  graphs.differentiated.resize(graphs.tangents.size());
  for (std::size_t k = graphs.tangents.size(); k-- > 0;) {
    const auto& tangent = graphs.backward.inputs[graphs.tangents[k]];
    const auto* type = tangent.type == fx::noIndex ? nullptr : &graphs.backward.types[tangent.type];
    auto found = resultOf(graphs, tangent);
    for (std::size_t i = before; found == graphs.results && i-- > 0;) {
      const auto* given = typeOf(forward, forward.outputs[i].value);
      if (type != nullptr && given != nullptr && type->dtype == given->dtype && type->sizes == given->sizes) found = i;
    }
    if (found == graphs.results)
      badInput(fmt::format("no output of the forward fits the tangent '{}'", tangent.name), graphs.backwardPlace);
    graphs.differentiated[k] = found;
    before = found;
  }
}

/// An input of the backward has the name of the output that was saved for it. Inputs of other names, generator states,
/// take what is left in order: sizes come first in the backward and last in the forward.
void pairSaved(JobGraphs& graphs) {
  const auto& outputs = graphs.forward.outputs;
  std::unordered_map<std::string, std::size_t> named;
  for (std::size_t i = outputs.size(); i-- > 0;) named[nameOf(graphs.forward, outputs[i].value)] = i;
  std::unordered_set<std::string> wanted;
  for (const auto& input : graphs.backward.inputs) wanted.insert(input.name);
  graphs.savedFrom.resize(graphs.backward.inputs.size());
  std::size_t next = graphs.results;
  for (std::size_t i = 0; i < graphs.backward.inputs.size(); ++i) {
    const auto& input = graphs.backward.inputs[i];
    if (isTangent(input)) {  // offsets of a jagged tensor's gradient are those of the result
      const auto result = resultOf(graphs, input);
      if (!isCotangent(graphs.backward, input) && result < graphs.results) graphs.savedFrom[i] = result;
      continue;
    }
    if (isGeneratorState(input)) continue;
    if (const auto output = named.find(input.name); output != named.end()) {
      graphs.savedFrom[i] = output->second;
      continue;
    }
    while (next < outputs.size() && wanted.contains(nameOf(graphs.forward, outputs[next].value))) ++next;
    if (next >= outputs.size())
      badInput(fmt::format("'{}' is not an output of the forward", input.name), graphs.backwardPlace);
    graphs.savedFrom[i] = next++;
  }
}

}  // namespace

bool isTangent(const fx::Input& input) {
  return input.descriptor.text.find("TangentAOTInput(") != std::string::npos ||
         (input.descriptor.text.empty() && input.name.starts_with("tangents_"));
}

bool isCotangent(const fx::Graph& graph, const fx::Input& input) {
  if (!isTangent(input) || input.type == fx::noIndex) return false;
  const auto& type = graph.types[input.type];
  return type.kind == fx::Type::Kind::tensor && isDifferentiable(type.dtype);
}

bool isGeneratorState(const fx::Input& input) {
  return input.type == fx::noIndex &&
         (input.name.starts_with("fwd_rng_state_") || input.name.starts_with("bwd_rng_state_"));
}

std::size_t primalsOf(const fx::Graph& graph) {
  return static_cast<std::size_t>(std::count_if(graph.inputs.begin(), graph.inputs.end(), [](const auto& input) {
    return !isTangent(input) && !isGeneratorState(input);
  }));
}

JobGraphs readComputedGraphs(const jobs::JobLog& log, const jobs::Attempt& attempt, const jobs::GraphRecord* chosen) {
  const auto* computed = chosen;
  for (const auto kind : {jobs::GraphKind::forward, jobs::GraphKind::inference, jobs::GraphKind::joint})
    if (computed == nullptr) computed = attempt.find(kind);
  for (const auto& graph : attempt.graphs)
    if (computed == nullptr && graph.kind == jobs::GraphKind::other) computed = &graph;
  if (computed == nullptr) refuse(log, attempt, "forward");
  JobGraphs graphs;
  graphs.computed = computed->kind;
  graphs.forwardPlace = jobs::placeOf(log, computed->payload);
  graphs.forward = read(log, *computed);
  if (const auto* backward = attempt.find(jobs::GraphKind::backward);
      backward != nullptr && computed->kind == jobs::GraphKind::forward) {
    graphs.backwardPlace = jobs::placeOf(log, backward->payload);
    graphs.backward = read(log, *backward);
  }
  if (const auto* joint = attempt.find(jobs::GraphKind::joint)) graphs.joint = read(log, *joint);
  if (const auto* dynamo = attempt.find(jobs::GraphKind::dynamo)) graphs.dynamo = read(log, *dynamo);
  for (const auto& [name, value] : jobs::sizeHints(log, attempt)) graphs.sizes[name] = value;
  if (const auto* script = attempt.find(jobs::GraphKind::runnable)) {
    for (const auto& [name, value] :
         fx::readRepro(jobs::payloadText(log, script->payload), jobs::placeOf(log, script->payload)).sizes)
      graphs.sizes.try_emplace(name, value);
  }
  unrollLoops(graphs);
  for (std::size_t i = 0; i < graphs.backward.inputs.size(); ++i) {
    if (isCotangent(graphs.backward, graphs.backward.inputs[i])) graphs.tangents.push_back(i);
  }
  bindSources(log, attempt, graphs);
  countResults(graphs);
  describeResults(graphs);
  alignGradients(graphs.forward, 0, graphs.backward);
  if (graphs.joint) alignGradients(graphs.forward, graphs.results, *graphs.joint);
  if (graphs.computed == jobs::GraphKind::joint)
    graphs.forward = forwardPart(graphs.forward, graphs.results, graphs.forwardPlace);
  return graphs;
}

JobGraphs readUnpairedGraphs(const jobs::JobLog& log, const jobs::Attempt& attempt) {
  for (const auto kind : {jobs::GraphKind::forward, jobs::GraphKind::backward})
    if (attempt.find(kind) == nullptr) refuse(log, attempt, jobs::name(kind));
  return readComputedGraphs(log, attempt);
}

JobGraphs readJobGraphs(const jobs::JobLog& log, const jobs::Attempt& attempt, const SymbolLookup& lookup) {
  auto graphs = readUnpairedGraphs(log, attempt);
  pairTangents(graphs);
  pairSaved(graphs);
  tieDraws(graphs, lookup);
  return graphs;
}

fx::Graph forwardPart(const fx::Graph& joint, std::size_t results, const std::string& place) {
  auto graph = joint;
  graph.nodes.resize(jobs::backwardBorder(joint));
  graph.outputs.resize(std::min(results, graph.outputs.size()));
  for (auto& input : graph.inputs) input.dropped |= isTangent(input);
  for (const auto& output : graph.outputs)
    fx::forEachValue(output.value, [&](std::size_t value) {
      if (value >= graph.valueCount()) badInput("the joint graph makes a result in its backward", place);
    });
  return graph;
}

bool isDifferentiated(const JobGraphs& graphs, std::size_t i) {
  const auto& input = graphs.forward.inputs[i];
  if (input.type == fx::noIndex || isWhole(graphs)) return false;
  const auto& type = graphs.forward.types[input.type];
  if (type.kind != fx::Type::Kind::tensor || !isDifferentiable(type.dtype)) return false;
  if (graphs.sources[i] && !graphs.sources[i]->dtype.empty()) return graphs.sources[i]->requiresGrad;
  if (graphs.joint && graphs.joint->outputs.size() == graphs.results + primalsOf(graphs.forward))
    return !graphs.joint->outputs[graphs.results + i].value.is(Kind::none);
  return i < graphs.backward.outputs.size() && !graphs.backward.outputs[i].value.is(Kind::none);
}

std::string inputLabel(const JobGraphs& graphs, std::size_t input) {
  const auto& name = graphs.forward.inputs[input].name;
  return graphs.sources[input] ? fmt::format("{} ({})", name, jobs::plainName(graphs.sources[input]->name)) : name;
}

std::string sourceText(const fx::Graph& graph, const fx::Node& node) {
  if (node.source == fx::noIndex) return {};
  const auto& source = graph.sources[node.source];
  return source.file.empty() ? std::string() : fmt::format("{}:{}: {}", source.file, source.line, source.code);
}

}  // namespace retrograd
