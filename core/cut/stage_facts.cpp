#include "core/cut/stage_facts.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/id_vector.h"
#include "core/cut/json.h"
#include "core/derivation/result_names.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// Memory that the whole model's forward keeps for the backward, weights and inputs apart.
std::vector<ValueId> keptByForward(const Analysis& whole) {
  std::vector<ValueId> saved;
  for (std::size_t i = 0; i < whole.backward.savedCount; ++i)
    if (const auto id = whole.backward.inputs[i];
        id && whole.document->value(id).storage && !whole.document->storage(id).external)
      saved.push_back(id);
  return saved;
}

std::int64_t storageBytes(const Document& document, ValueId id, std::unordered_set<StorageId>& seen) {
  const auto storage = document.value(id).storage;
  return storage && seen.insert(storage).second ? document.storage(storage).bytes : 0;
}

void addWeights(StageFacts& facts, const ModelFile& model, const PipelineStage& stage) {
  const auto& document = *model.document;
  for (auto i : stage.held) {
    const auto& input = model.computation.inputs[i];
    if (!input.value || !document.isTensor(input.value)) continue;
    const auto& meta = document.meta(input.value);
    if (input.kind == InputKind::parameter) {
      ++facts.parameters;
      facts.parameterElements += meta.elements();
      facts.parameterBytes += meta.bytes();
    } else {
      facts.bufferBytes += meta.bytes();
    }
  }
}

/// By value: whether it leads, over values that require a gradient, to an output at which the gradient begins. A value
/// written in place counts as leading there.
IdVector<ValueId, char> leadingToGradient(const Analysis& whole) {
  const auto& document = *whole.document;
  const auto& computation = whole.computation();
  IdVector<ValueId, char> leads(document.valueCount(), 0);
  const auto mark = [&](ValueId id) {
    if (id && document.isTensor(id) && document.value(id).requiresGrad) leads[id] = 1;
  };
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto kind = computation.outputs[i].kind;
    if ((kind == OutputKind::user || kind == OutputKind::loss) &&
        whole.request.cotangents.contains(userOutputPosition(computation, i)))
      mark(computation.outputs[i].value);
  }
  const auto& ops = computation.trace.ops;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const auto outputs = document.outputs(*op);
    const bool leading = std::any_of(outputs.begin(), outputs.end(), [&](ValueId id) { return id && leads[id]; });
    if (!leading && writtenOperands(document, *op).empty()) continue;
    for (auto operand : document.operands(*op)) mark(operand);
  }
  return leads;
}

}  // namespace

std::vector<int> stageOfOps(const Computation& computation, const PipelineSplit& split) {
  std::unordered_map<BoundSymbolId, int> stageOf;
  for (std::size_t s = 0; s < split.stages.size(); ++s)
    for (auto op : split.stages[s].ops) stageOf.emplace(op, static_cast<int>(s));
  std::vector<int> stages;
  for (auto op : computation.trace.ops) {
    const auto it = stageOf.find(op);
    stages.push_back(it == stageOf.end() ? -1 : it->second);
  }
  return stages;
}

std::vector<StageFacts> stageFacts(const Analysis& whole, const ModelFile& model, const PipelineSplit& split,
                                   const OpCosts& costs) {
  const auto& document = *model.document;
  const auto& ops = model.computation.trace.ops;
  std::vector<StageFacts> all(split.stages.size());
  std::unordered_map<BoundSymbolId, std::size_t> stageOf;
  for (std::size_t s = 0; s < split.stages.size(); ++s) {
    auto& facts = all[s];
    const auto& stage = split.stages[s];
    facts.ops = stage.ops.size();
    addWeights(facts, model, stage);
    std::unordered_set<StorageId> seen;
    for (const auto& input : stage.inputs) storageBytes(document, input.value, seen);
    for (auto i : stage.held)
      if (const auto id = model.computation.inputs[i].value) storageBytes(document, id, seen);
    for (auto op : stage.ops) {
      stageOf.emplace(op, s);
      for (auto output : document.outputs(op))
        if (output) facts.activationBytes += storageBytes(document, output, seen);
    }
  }
  const auto positions = stageOfOps(model.computation, split);
  for (std::size_t i = 0; i < ops.size() && !costs.empty(); ++i) {
    if (positions[i] < 0) continue;
    all[positions[i]].forward += costs.forward[i];
    all[positions[i]].backward += costs.backward[i];
  }
  std::unordered_set<StorageId> kept;
  for (auto id : keptByForward(whole)) {
    auto maker = whole.document->value(id).producer;
    if (maker && whole.document->boundSymbol(maker).origin.op) maker = whole.document->boundSymbol(maker).origin.op;
    while (maker && !stageOf.contains(maker)) maker = whole.document->boundSymbol(maker).parent;
    if (maker) all[stageOf.at(maker)].savedBytes += storageBytes(*whole.document, id, kept);
  }
  return all;
}

bool drawsAnything(const Analysis& whole) {
  return std::any_of(whole.joint.ops.begin(), whole.joint.ops.end(),
                     [&](BoundSymbolId op) { return (whole.document->boundSymbol(op).effects & effect::random) != 0; });
}

std::vector<StageEdge> stageEdges(const Analysis& whole, const PipelineSplit& split) {
  std::vector<StageEdge> edges;
  const auto add = [&](const StageEdge& one) {
    if (std::find(edges.begin(), edges.end(), one) == edges.end()) edges.push_back(one);
  };
  for (const auto& edge : split.edges)
    if (edge.source >= 0) add({edge.source, edge.destination});
  if (drawsAnything(whole))
    for (std::int32_t s = 0; s + 1 < static_cast<std::int32_t>(split.stages.size()); ++s) add({s, s + 1});
  return edges;
}

std::vector<char> gradientEdges(const Analysis& whole, const PipelineSplit& split) {
  const auto& document = *whole.document;
  const auto leads = whole.request.cotangents.empty() ? IdVector<ValueId, char>() : leadingToGradient(whole);
  std::vector<char> returned;
  for (const auto& edge : split.edges)
    returned.push_back(edge.source >= 0 && document.isTensor(edge.value) && document.value(edge.value).requiresGrad &&
                       (leads.empty() || leads[edge.value]));
  return returned;
}

std::vector<StageTraffic> stageTraffic(const Analysis& whole, const ModelFile& model, const PipelineSplit& split) {
  std::map<std::pair<int, int>, StageTraffic> all;
  const auto returned = gradientEdges(whole, split);
  for (std::size_t i = 0; i < split.edges.size(); ++i) {
    const auto& edge = split.edges[i];
    if (edge.source < 0) continue;
    auto& traffic = all[{edge.source, edge.destination}];
    const auto bytes = describeEdge(model, edge).bytes;
    traffic = {edge.source, edge.destination, traffic.valueBytes + bytes,
               traffic.gradientBytes + (returned[i] ? bytes : 0)};
  }
  std::vector<StageTraffic> list;
  for (const auto& [stages, traffic] : all) list.push_back(traffic);
  return list;
}

std::vector<EdgeCost> transferTimes(const std::vector<StageTraffic>& traffic, double link) {
  const auto time = [link](std::int64_t bytes) { return static_cast<double>(bytes) / (link * 1e6); };
  std::vector<EdgeCost> edges;
  for (const auto& [source, destination, values, gradients] : traffic)
    edges.push_back({{source, destination}, time(values), time(gradients)});
  return edges;
}

std::vector<StageBorder> stageBorders(const Analysis& whole, const ModelFile& model, const PipelineSplit& split) {
  std::vector<StageBorder> borders(split.stages.empty() ? 0 : split.stages.size() - 1);
  // A value is sent once to each stage that uses it; those on their way further on pass the borders between.
  const auto returned = gradientEdges(whole, split);
  for (std::size_t i = 0; i < split.edges.size(); ++i) {
    const auto& edge = split.edges[i];
    if (edge.source < 0) continue;
    const auto bytes = describeEdge(model, edge).bytes;
    const bool hasGradient = returned[i];
    for (int b = edge.source; b < edge.destination; ++b) {
      auto& border = borders[b];
      ++border.values;
      border.valueBytes += bytes;
      if (!hasGradient) continue;
      ++border.gradients;
      border.gradientBytes += bytes;
    }
  }
  return borders;
}

}  // namespace retrograd
