// Higher-order ops: the graphs they carry, and what the reader has to say about a file.
#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/pt2/pt2_graph.h"
#include "core/trace/effects.h"
#include "core/trace/implied.h"
#include "core/trace/op_traits.h"

namespace retrograd::pt2 {
namespace {

constexpr int maxNesting = 32;
constexpr std::size_t maxPlaces = 20;

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size() && i < maxPlaces; ++i) text += (i ? ", " : "") + parts[i];
  if (parts.size() > maxPlaces) text += " and " + std::to_string(parts.size() - maxPlaces) + " more";
  return text;
}

}  // namespace

void GraphReader::readSubgraphs(BoundSymbolId op, const Call& call, bool gradMode) {
  const std::string name = document_.symbol(op).name;
  if (depth_ >= maxNesting) badInput("graphs nested deeper than " + std::to_string(maxNesting));
  ++depth_;
  bool inner = gradMode;
  if (hasTrait(name, OpTrait::setsGradMode) && !call.pattern.arguments.empty())
    inner = call.pattern.arguments.front().integer != 0;
  const auto passed = implied::passedOperands(document_, op);
  for (const auto& pending : call.graphs) {
    try {
      readSubgraph(pending, op, passed, inner);
    } catch (const Error& e) {
      throw e.code() == ErrorCode::cancelled ? e : e.at("graph " + document_.subgraph(pending.id).name);
    }
  }
  const auto& bound = document_.boundSymbol(op);
  const auto effects = effectsInComputation(document_, document_.symbol(bound.symbol), call.pattern, call.operands);
  document_.boundSymbol(op).effects = effects;
  --depth_;
}

void GraphReader::readSubgraph(const PendingGraph& pending, BoundSymbolId op, std::span<const ValueId> passed,
                               bool gradMode) {
  Scope scope(*pending.graph);
  Subgraph body;
  body.name = document_.subgraph(pending.id).name;
  const auto inputs = pending.graph->at("inputs").items();
  const bool share = passed.size() == inputs.size();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    checkInputKind(inputs[i]);
    const auto name = valueName(inputs[i]);
    if (!inputs[i].find("as_tensor")) {
      body.inputs.push_back(name.empty() ? ValueId() : defineOther(name, scope, ValueKind::activation));
      continue;
    }
    const auto from = share && document_.isTensor(passed[i]) ? document_.value(passed[i]).storage : StorageId();
    const auto id = defineTensor(name, scope, ValueKind::activation, from);
    auto& storage = document_.storage(id);
    if (!storage.first) storage.first = id;
    body.inputs.push_back(id);
  }
  body.ops = readNodes(*pending.graph, scope, op, gradMode);
  ArgumentReader reader(scope, body.outputValues, [](const Json&) -> SubgraphId { badInput("a graph as output"); });
  for (const auto& output : pending.graph->at("outputs").items()) body.outputs.push_back(reader.read(output));
  document_.subgraph(pending.id) = std::move(body);
}

void GraphReader::notePlaces(const Symbol& symbol, BoundSymbolId op, const NodeOrigin& origin) {
  if (!symbol.known) unknown_[symbol.name].push_back({op, placeOf(op)});
  if (origin.stoppedGradient) detached_.push_back({op, placeOf(op)});
  else if (origin.ranWithoutGrad) withoutGrad_.push_back({op, placeOf(op)});
}

std::string GraphReader::placeOf(BoundSymbolId op) const {
  const auto& bound = document_.boundSymbol(op);
  std::string place(document_.text(bound.name));
  if (bound.module) place += " in " + std::string(document_.text(bound.module));
  if (auto source = MetadataReader::placeOf(document_, bound.source); !source.empty()) place += " (" + source + ")";
  return place;
}

std::vector<Problem> GraphReader::problems() const {
  std::vector<Problem> all;
  const auto add = [&](Problem::Severity severity, std::string message, const std::vector<Place>& places) {
    std::vector<std::string> texts;
    for (const auto& place : places) texts.push_back(place.text);
    all.push_back({severity, std::move(message), joined(texts), places.front().op.index});
  };
  for (const auto& [name, places] : unknown_)
    add(Problem::Severity::warning,
        unknownOpMessage(name) + "; used " + std::to_string(places.size()) + (places.size() == 1 ? " time" : " times"),
        places);
  for (const auto& place : metadata_.customFunctions())
    all.push_back({Problem::Severity::warning,
                   "a custom autograd.Function seems to be called here: export inlines its forward and loses its "
                   "backward, so gradients through it "
                   "are those of the ops inside",
                   place, -1});
  if (!detached_.empty())
    add(Problem::Severity::note,
        std::to_string(detached_.size()) +
            " detach() found again in a decomposed graph: no gradient flows through these aliases",
        detached_);
  if (!withoutGrad_.empty())
    add(Problem::Severity::note,
        std::to_string(withoutGrad_.size()) +
            " ops of no_grad regions found again in a decomposed graph: no gradient flows through them",
        withoutGrad_);
  return all;
}

}  // namespace retrograd::pt2
