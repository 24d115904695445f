#include "core/torch/opinion/earlier_graphs.h"

#include <algorithm>

#include "core/base/number_text.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/job_graphs.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/opinion/graph_model.h"
#include "core/torch/opinion/job_inputs.h"

namespace retrograd {
namespace {

constexpr std::string_view resumed = "torch_dynamo_resume_in_", stack = "___stack";

/// "forward" of "torch_dynamo_resume_in_forward_at_123"; any other name as it is.
std::string_view originalOf(std::string_view function) {
  if (!function.starts_with(resumed)) return function;
  function.remove_prefix(resumed.size());
  return function.substr(0, function.rfind("_at_"));
}

/// A result of the graph that is called like the local variable: Dynamo names a node after the variable that it was
/// assigned to, a later value of the same variable "h_1".
std::optional<int> likeness(std::string_view node, std::string_view local) {
  if (node == local) return 0;
  if (!node.starts_with(local) || node.size() < local.size() + 2 || node[local.size()] != '_') return std::nullopt;
  const auto number = numberIn<int>(node.substr(local.size() + 1));
  return number && *number > 0 ? number : std::nullopt;
}

bool fits(const fx::Graph& graph, const fx::Output& output, const TensorMeta& wanted, const SizeBindings& sizes) {
  if (!output.value.is(fx::Expression::Kind::value)) return false;
  const auto index = graph.valueType(output.value.valueIndex());
  if (index == fx::noIndex) return false;
  const auto& type = graph.types[index];
  if (type.kind != fx::Type::Kind::tensor || type.dtype != wanted.dtype || type.sizes.size() != wanted.sizes.size())
    return false;
  for (std::size_t d = 0; d < type.sizes.size(); ++d)
    if (evaluateSize(type.sizes[d], sizes) != wanted.sizes[d]) return false;
  return true;
}

/// A part of what a call gives is called "getitem", whatever variable it was assigned to: "a, b = f(x)".
bool isPart(const fx::Graph& graph, const fx::Output& output) {
  const auto value = output.value.valueIndex();
  return value >= graph.inputs.size() && graph.nodes[value - graph.inputs.size()].call.is(fx::Expression::Kind::item);
}

/// Which result of Dynamo's graph the local variable is: the one that is called like it, else the only part of its
/// type.
std::optional<std::size_t> resultOf(const fx::Graph& dynamo, std::string_view local, const TensorMeta& type,
                                    const SizeBindings& sizes) {
  std::optional<std::size_t> found, unnamed;
  int best = -1, alike = 0;
  for (std::size_t i = 0; i < dynamo.outputs.size(); ++i) {
    if (!fits(dynamo, dynamo.outputs[i], type, sizes)) continue;
    if (local.starts_with(stack) || isPart(dynamo, dynamo.outputs[i])) {
      unnamed = i;
      ++alike;
    }
    if (local.starts_with(stack)) continue;  // it has no name: it is the only result of its type or none
    const auto like = likeness(dynamo.valueName(dynamo.outputs[i].value.valueIndex()), local);
    if (!like || *like < best) continue;
    best = *like;
    found = i;
  }
  if (found) return found;
  return alike == 1 ? unnamed : std::nullopt;
}

/// Where that result is among the forward's outputs, which may begin with what the graph wrote to its inputs.
std::optional<std::size_t> positionOf(const JobGraphs& graphs, std::size_t result, std::size_t results) {
  for (std::size_t i = 0; i < graphs.results; ++i) {
    const auto& descriptor = graphs.forward.outputs[i].descriptor;
    if (descriptor.kind() == "PlainAOTOutput" && descriptor.plainIndex() == static_cast<std::int64_t>(result)) return i;
  }
  const bool hasDescriptors = graphs.results > 0 && !graphs.forward.outputs[0].descriptor.text.empty();
  return hasDescriptors || graphs.results != results ? std::nullopt : std::optional(result);
}

const jobs::Attempt* attemptOf(const jobs::Compile& compile) {
  for (auto attempt = compile.attempts.rbegin(); attempt != compile.attempts.rend(); ++attempt)
    if (attempt->find(jobs::GraphKind::dynamo) != nullptr &&
        (attempt->find(jobs::GraphKind::forward) != nullptr || attempt->find(jobs::GraphKind::inference) != nullptr))
      return &*attempt;
  return nullptr;
}

}  // namespace

bool isBetweenGraphs(const jobs::InputSource& source) {
  return !source.path.empty() && source.path.front().starts_with(stack);  // "___stack0", or a part of it: "___stack0.0"
}

std::optional<EarlierResult> earlierResult(const jobs::JobLog& log, const jobs::GraphChoice& choice,
                                           const jobs::InputSource& source, const TensorMeta& type,
                                           const SecondOpinionRequest& request, const Progress& progress) {
  if (!choice.compile->function.starts_with(resumed) || source.path.size() != 1) return std::nullopt;
  const auto& compiles = choice.process->compiles;
  const auto own = static_cast<std::size_t>(choice.compile - compiles.data());
  for (auto k = own; k-- > 0;) {
    const auto& compile = compiles[k];
    if (compile.file != choice.compile->file || originalOf(compile.function) != originalOf(choice.compile->function))
      continue;
    const auto* attempt = attemptOf(compile);
    if (attempt == nullptr) continue;
    const auto graphs = readComputedGraphs(log, *attempt);
    const auto& record = attempt->find(jobs::GraphKind::dynamo)->payload;
    const auto dynamo = fx::readGraph(jobs::payloadText(log, record), jobs::placeOf(log, record));
    const auto result = resultOf(dynamo, source.path.front(), type, graphs.sizes);
    const auto position = result ? positionOf(graphs, *result, dynamo.outputs.size()) : std::nullopt;
    if (!position) continue;
    const auto inputs = jobInputs(log, {choice.process, &compile, attempt}, graphs, request, progress);
    jobs::ListingOptions options;
    options.sizes = graphs.sizes;
    options.runnable = true;
    options.returnsAll = false;
    options.outputs = {*position};
    DerivationRequest derivation;
    derivation.seed = request.seed;
    derivation.inputs = inputs.given;
    derivation.gradInputs.emplace();
    const auto model = openGraph(graphs.forward, graphs.forwardPlace, options, derivation, progress);
    auto outputs = runJoint(*model.analysis).outputs;
    if (outputs.empty() || !outputs.front()) continue;
    return EarlierResult{jobs::nameOf(compile), *outputs.front()};
  }
  return std::nullopt;
}

}  // namespace retrograd
