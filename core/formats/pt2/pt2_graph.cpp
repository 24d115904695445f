// Nodes: the symbol of a target, the arguments of a call, the order of a graph.
#include "core/formats/pt2/pt2_graph.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "core/trace/effects.h"
#include "core/trace/op_traits.h"
#include "core/trace/python_text.h"

namespace retrograd::pt2 {
namespace {

constexpr std::string_view opsPrefix = "torch.ops.";

std::string_view shortTarget(std::string_view target) {
  return target.starts_with(opsPrefix) ? target.substr(opsPrefix.size()) : target;
}

std::string nodeName(const Json& node) {
  if (const Json* name = node.find("name"); name && name->isString()) return std::string(name->text());
  if (const Json* outputs = node.find("outputs"); outputs && outputs->isArray() && !outputs->items().empty()) {
    const Json& first = outputs->items().front();
    if (const Json* list = first.find("as_tensors"); list && list->isArray() && !list->items().empty())
      return std::string(valueName(list->items().front()));
    return std::string(valueName(first));  // archives of PyTorch 2.9 name no nodes
  }
  return {};
}

}  // namespace

const GraphReader::Op& GraphReader::opOf(std::string_view target) {
  auto [it, isNew] = ops_.try_emplace(std::string(target));
  Op& op = it->second;
  if (!isNew) return op;
  const Symbol symbol = resolveSymbol(target, lookup_);
  op.symbol = document_.internSymbol(symbol);
  op.hasSchema = !symbol.schema.empty();
  op.isToken = hasTrait(symbol.name, OpTrait::ordersEffects);
  for (const auto& a : symbol.arguments) op.arguments.push_back(parseSchemaType(a.type));
  for (const auto& r : symbol.returns) op.returns.push_back(parseSchemaType(r.type));
  return op;
}

std::vector<BoundSymbolId> GraphReader::readNodes(const Json& graph, Scope& scope, BoundSymbolId parent,
                                                  bool gradMode) {
  const auto nodes = graph.at("nodes").items();
  std::vector<BoundSymbolId> ops;
  ops.reserve(nodes.size());
  for (const auto& node : nodes) {
    try {
      ops.push_back(readNode(node, scope, parent, gradMode));
    } catch (const Error& e) {
      if (e.code() == ErrorCode::cancelled) throw;
      throw e.at("node " + nodeName(node));
    }
    if (parent) continue;
    if (++nodesRead_ % 256 == 0)
      progress_.at("Read graph", static_cast<double>(nodesRead_) / static_cast<double>(nodes.size()));
  }
  return ops;
}

BoundSymbolId GraphReader::readNode(const Json& node, Scope& scope, BoundSymbolId parent, bool gradMode) {
  const auto target = node.at("target").text();
  const Op& op = opOf(target);
  const NodeOrigin origin = metadata_.read(node, shortTarget(target));
  Call call;
  readArguments(node, op, scope, call);
  BoundSymbol bound;
  bound.effects = effectsInComputation(document_, document_.symbol(op.symbol), call.pattern, call.operands);
  applyWrites(op, call);
  readOutputs(node, op, scope, call);
  bound.symbol = op.symbol;
  bound.pattern = document_.internPattern(call.pattern);
  bound.parent = parent;
  bound.source = origin.source;
  bound.module = origin.module;
  bound.gradMode = gradMode && !origin.stoppedGradient && !origin.ranWithoutGrad;
  if (auto name = nodeName(node); !name.empty()) bound.name = document_.intern(name);
  const auto id = document_.addBoundSymbol(bound, call.operands, call.outputs);
  for (const auto output : call.outputs) {
    if (!output) continue;
    document_.value(output).producer = id;
    if (auto storage = document_.value(output).storage; storage && !document_.storage(storage).first)
      document_.storage(storage).first = output;
  }
  notePlaces(document_.symbol(op.symbol), id, origin);
  if (!call.graphs.empty()) readSubgraphs(id, call, bound.gradMode);
  return id;
}

/// A name that Python takes and that no other graph of the call has.
std::string GraphReader::graphName(std::string_view name, const Call& call) const {
  auto display = pythonName(std::string(name), "graph_");
  const auto isTaken = [&](const std::string& text) {
    return std::any_of(call.graphs.begin(), call.graphs.end(),
                       [&](const auto& g) { return document_.subgraph(g.id).name == text; });
  };
  const auto base = display;
  for (int suffix = 1; isTaken(display); ++suffix) display = base + "_" + std::to_string(suffix);
  return display;
}

void GraphReader::readArguments(const Json& node, const Op& op, const Scope& scope, Call& call) {
  const bool higherOrder = document_.symbol(op.symbol).isHigherOrder;
  ArgumentReader reader(scope, call.operands, [&](const Json& graph) {
    if (!higherOrder) badInput("a graph as argument of an op that is not of higher order");
    Subgraph subgraph;
    subgraph.name = graphName(graph.at("name").text(), call);
    const auto id = document_.addSubgraph(std::move(subgraph));
    call.graphs.push_back({id, &graph.at("graph")});
    return id;
  });
  const auto inputs = node.at("inputs").items();
  if (op.hasSchema) {
    readSchemaArguments(inputs, op, reader, call);
  } else {
    readFreeArguments(inputs, reader, call);
  }
  call.pattern.operandCount = static_cast<std::int32_t>(call.operands.size());
}

void GraphReader::readSchemaArguments(std::span<const Json> inputs, const Op& op, ArgumentReader& reader, Call& call) {
  const Symbol& symbol = document_.symbol(op.symbol);
  std::vector<const Json*> given(symbol.arguments.size(), nullptr);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto name = inputs[i].at("name").text();
    const int position = name.empty() ? static_cast<int>(i) : symbol.argumentIndex(name);
    if (position < 0 || position >= std::ssize(given))
      badInput(symbol.name + " has no argument '" + std::string(name) + "' (" + symbol.schema + ")");
    if (given[position]) badInput("argument '" + symbol.arguments[position].name + "' is given twice");
    given[position] = &inputs[i].at("arg");
  }
  call.pattern.arguments.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& entry = symbol.arguments[i];
    if (!given[i]) {
      if (!entry.defaultValue) badInput("argument '" + entry.name + "' is missing (" + symbol.schema + ")");
      call.pattern.arguments.push_back(Argument::ofMissing());
      continue;
    }
    try {
      call.pattern.arguments.push_back(reader.read(*given[i], &op.arguments[i]));
    } catch (const Error& e) {
      throw e.at("argument '" + entry.name + "'");
    }
  }
}

void GraphReader::readFreeArguments(std::span<const Json> inputs, ArgumentReader& reader, Call& call) {
  bool named = false;
  for (const auto& input : inputs) {
    call.pattern.arguments.push_back(reader.read(input.at("arg")));
    call.pattern.names.emplace_back(input.at("name").text());
    named |= !call.pattern.names.back().empty();
  }
  if (!named) call.pattern.names.clear();
}

std::int32_t& GraphReader::writesTo(StorageId storage) {
  if (!writes_.contains(storage)) writes_.resize(storage.index + 64, 0);
  return writes_[storage];
}

void GraphReader::applyWrites(const Op& op, const Call& call) {
  const auto& symbol = document_.symbol(op.symbol);
  for (const auto position : writtenArguments(symbol, call.pattern.arguments))
    forEachOperand(call.pattern.arguments[position], [&](std::size_t hole) {
      const auto storage = document_.value(call.operands[hole]).storage;
      if (storage) ++writesTo(storage);
    });
}

GraphBody GraphReader::readMain(const Json& graph, std::vector<InputSpec>& specs,
                                std::unordered_map<std::string, StorageId>& storages) {
  Scope scope(graph);
  reserveNames(graph);
  GraphBody body;
  const auto inputs = graph.at("inputs").items();
  if (inputs.size() != specs.size())
    badInput("the graph has " + std::to_string(inputs.size()) + " inputs but the signature describes " +
             std::to_string(specs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    body.inputs.push_back(defineInput(inputs[i], specs[i], scope, storages));
  body.ops = readNodes(graph, scope, {}, true);
  ArgumentReader reader(scope, body.outputValues, [](const Json&) -> SubgraphId { badInput("a graph as output"); });
  for (const auto& output : graph.at("outputs").items()) {
    body.outputs.push_back(reader.read(output));
    body.outputNames.push_back(valueName(output));
  }
  return body;
}

}  // namespace retrograd::pt2
