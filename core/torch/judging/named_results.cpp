#include "core/torch/judging/named_results.h"

#include <algorithm>

#include "core/derivation/result_names.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/judging/compare.h"
#include "core/torch/session/session.h"

namespace retrograd {
namespace {

std::optional<TensorData> literalOutput(const Argument& literal) {
  if (literal.kind != Argument::Kind::integer && literal.kind != Argument::Kind::real) return std::nullopt;
  const bool real = literal.kind == Argument::Kind::real;
  auto memory = std::make_shared<std::pair<std::int64_t, double>>(literal.integer, literal.real);
  const auto* data =
      real ? reinterpret_cast<const std::byte*>(&memory->second) : reinterpret_cast<const std::byte*>(&memory->first);
  return TensorData{{.dtype = real ? DType::f64 : DType::i64}, data, 8, memory};
}

/// "grad.p.w", "grad.in.x" for "p.w", "in.x".
std::string gradientName(const std::string& key, const ParameterNames& names) {
  return "grad." + (key.starts_with("p.") ? "p." + names.first(key.substr(2)) : key);
}

}  // namespace

ParameterNames::ParameterNames(const Computation& computation) {
  std::map<std::string, std::string> byStorage;
  for (const auto& input : computation.inputs) {
    if (input.kind != InputKind::parameter) continue;
    const auto first =
        input.storageKey.empty() ? input.target : byStorage.try_emplace(input.storageKey, input.target).first->second;
    first_.try_emplace(input.target, first);
    for (const auto& alias : input.aliases) first_.try_emplace(alias, first);
  }
}

const std::string& ParameterNames::first(const std::string& name) const {
  const auto it = first_.find(name);
  return it == first_.end() ? name : it->second;
}

TensorMap namedResults(const Analysis& analysis, const RunResult& run) {
  TensorMap named;
  const auto& computation = analysis.computation();
  const auto users = userOutputs(computation);
  for (std::size_t i = 0; i < users.size(); ++i) {
    auto output = i < run.outputs.size() && run.outputs[i] ? run.outputs[i]
                                                           : literalOutput(computation.outputs[users[i]].literal);
    if (output) named.emplace("out." + std::to_string(i), std::move(*output));
  }
  const ParameterNames names(computation);
  for (const auto& [key, tensor] : run.gradients) named.emplace(gradientName(key, names), tensor);
  for (const auto& [key, tensor] : run.mutated) named.emplace("mut." + key, tensor);
  return named;
}

TensorMap namedSessionResults(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  Session session(analysis, {.historyBytes = 0});
  session.runTo(session.size(), progress);
  return namedResults(*analysis, {session.results(), session.gradients(), session.mutated()});
}

std::map<std::string, ValueId> namedValues(const Analysis& analysis) {
  std::map<std::string, ValueId> values;
  const auto& computation = analysis.computation();
  const auto& outputs = analysis.joint.outputs;
  const auto users = userOutputs(computation);
  for (std::size_t i = 0; i < users.size() && users[i] < outputs.size(); ++i)
    values.emplace("out." + std::to_string(i), outputs[users[i]]);
  const ParameterNames names(computation);
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    if (const auto at = analysis.joint.resultCount + i; at < outputs.size() && outputs[at])
      values.emplace(gradientName(resultKey(computation.inputs[i], "p."), names), outputs[at]);
  for (const auto& [key, value] : mutatedValues(analysis)) values.emplace("mut." + key, value);
  return values;
}

std::vector<std::string> refusedGradientNames(const Analysis& analysis) {
  const ParameterNames names(analysis.computation());
  std::vector<std::string> refused;
  for (const auto& [input, op] : analysis.refusedGradients)
    refused.push_back(gradientName(resultKey(analysis.computation().inputs[input], "p."), names));
  return refused;
}

bool isGradientName(const std::string& name) { return name.starts_with("grad."); }
bool isWrittenName(const std::string& name) { return name.starts_with("mut."); }

const TensorData* afterTheRun(const Analysis& analysis, const TensorMap& results, const std::string& name) {
  if (name.starts_with("mut.in.")) return findTensor(analysis.request.inputs, name.substr(7));
  if (!name.starts_with("mut.b.")) return nullptr;
  const auto target = name.substr(6);
  const auto& inputs = analysis.computation().inputs;
  const auto own = std::ranges::find_if(
      inputs, [&](const InputSpec& input) { return input.kind == InputKind::buffer && input.target == target; });
  const auto metaOf = [&](const InputSpec& input) { return analysis.document->value(input.value).meta; };
  if (own != inputs.end() && !own->storageKey.empty())
    for (const auto& other : inputs)
      if (other.kind == InputKind::buffer && other.storageKey == own->storageKey && metaOf(other) == metaOf(*own))
        if (const auto* left = findTensor(results, "mut.b." + other.target)) return left;
  return findTensor(analysis.file.weights, target);
}

TensorMap namedExpectations(const Analysis& analysis, const Expected& expected) {
  TensorMap named;
  const ParameterNames names(analysis.computation());
  for (const auto& [position, tensor] : expected.outputs) named.emplace("out." + position, tensor);
  for (const auto& [name, tensor] : expected.inputGradients) named.emplace("grad.in." + name, tensor);
  for (const auto& [name, tensor] : expected.parameterGradients) named.emplace("grad.p." + names.first(name), tensor);
  for (const auto& [name, tensor] : expected.bufferMutations) named.emplace("mut.b." + name, tensor);
  for (const auto& [name, tensor] : expected.inputMutations) named.emplace("mut.in." + name, tensor);
  return named;
}

std::map<std::string, ValueId> inputsByGradient(const Analysis& analysis) {
  const ParameterNames names(analysis.computation());
  std::map<std::string, ValueId> inputs;
  for (const auto& input : analysis.computation().inputs)
    if (input.value && analysis.document->isTensor(input.value))
      inputs.emplace(gradientName(resultKey(input, "p."), names), input.value);
  return inputs;
}

std::set<std::string> knownNames(const Analysis& analysis) {
  const auto& computation = analysis.computation();
  const ParameterNames names(computation);
  std::set<std::string> known;
  for (std::size_t i = 0; i < userOutputs(computation).size(); ++i) known.insert("out." + std::to_string(i));
  for (const auto& input : computation.inputs) {
    if (input.kind == InputKind::user) known.insert({"grad.in." + input.name, "mut.in." + input.name});
    if (input.kind == InputKind::parameter) known.insert("grad.p." + names.first(input.target));
    if (input.kind == InputKind::buffer) known.insert("mut.b." + input.target);
  }
  // Parameters that the forward writes, and other names of tied buffers.
  for (const auto& [name, tensor] : analysis.file.weights) known.insert("mut.b." + name);
  return known;
}

std::map<std::string, std::string> placesOfFirstOrder(const Analysis& analysis) {
  std::map<std::string, std::string> places;
  const auto& first = firstOf(analysis);
  if (differentiatedKind(analysis) != TraceKind::joint) return places;
  for (const auto* level = analysis.differentiated.get(); level->differentiated; level = level->differentiated.get())
    if (differentiatedKind(*level) != TraceKind::joint) return places;
  for (const auto& name : knownNames(first))
    if (!isGradientName(name)) places.emplace(name, name);
  const ParameterNames names(first.computation());
  auto position = userOutputs(first.computation()).size();
  const auto& inputs = first.computation().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!first.joint.outputs.at(first.joint.resultCount + i)) continue;
    places.emplace(gradientName(resultKey(inputs[i], "p."), names), "out." + std::to_string(position++));
  }
  return places;
}

std::vector<std::string> namesNotUsed(const Reference& reference, const Computation& computation) {
  std::vector<std::string> unused;
  for (const auto& [name, tensor] : reference.inputs) {
    const bool isInput =
        std::ranges::any_of(computation.inputs, [&](const InputSpec& input) { return input.name == name; });
    if (!isInput) unused.push_back("in." + name);
  }
  return unused;
}

bool holdsNothing(const Reference& reference) {
  const auto empty = [](const Expected& e) {
    return e.outputs.empty() && e.inputGradients.empty() && e.parameterGradients.empty() && e.bufferMutations.empty() &&
           e.inputMutations.empty();
  };
  return empty(reference.expected) && !reference.loss && (!reference.inDouble || empty(*reference.inDouble));
}

std::string firstOfThem(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i ? ", " : "") + names[i];
  return names.size() > most ? text + ", ..." : text;
}

}  // namespace retrograd
