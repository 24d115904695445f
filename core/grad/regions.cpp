// Higher-order ops: their subgraphs are inlined, under the grad mode and autocast that they set; loops unroll.
#include "core/grad/joint_builder.h"
#include "core/tracing/convert.h"
#include "core/tracing/op_table.h"

namespace retrograd {
namespace {

/// A higher-order op's arguments: what comes before its first subgraph, its subgraphs, and what comes behind.
struct Parts {
  std::vector<Argument> before, after;
  std::vector<SubgraphId> graphs;
};

Parts partsOf(const CallPattern& pattern) {
  Parts parts;
  for (const auto& argument : pattern.arguments) {
    if (argument.kind == Argument::Kind::subgraph) parts.graphs.emplace_back(argument.integer);
    else if (argument.kind != Argument::Kind::missing) (parts.graphs.empty() ? parts.before : parts.after).push_back(argument);
  }
  return parts;
}

const Argument& at(const std::vector<Argument>& arguments, std::size_t i, std::string_view op) {
  if (i >= arguments.size()) throw Error(ErrorCode::badInput, "it has too few arguments", std::string(op));
  return arguments[i];
}

}  // namespace

Binding JointBuilder::bindingOf(BoundSymbolId op, const Argument& argument) {
  if (argument.kind == Argument::Kind::operand) return resolve(document_.operands(op)[static_cast<std::size_t>(argument.integer)]);
  Binding literal;
  if (argument.kind != Argument::Kind::none) literal.number = argument;
  return literal;
}

std::vector<Binding> JointBuilder::bindingsOf(BoundSymbolId op, const Argument& list) {
  std::vector<Binding> bindings;
  if (list.kind == Argument::Kind::list)
    for (const auto& item : list.items) bindings.push_back(bindingOf(op, item));
  else
    bindings.push_back(bindingOf(op, list));
  return bindings;
}

std::vector<Binding> JointBuilder::inlineSubgraph(const Subgraph& graph, const std::vector<Binding>& arguments) {
  if (arguments.size() != graph.inputs.size())
    throw Error(ErrorCode::badInput, "it is called with " + std::to_string(arguments.size()) + " values and takes " + std::to_string(graph.inputs.size()),
                "subgraph " + graph.name);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (graph.inputs[i]) bindings_[static_cast<std::size_t>(graph.inputs[i].index)] = arguments[i];
  walk(graph.ops);
  std::vector<Binding> results;
  for (const auto& output : graph.outputs) {
    if (output.kind == Argument::Kind::operand) {
      results.push_back(resolve(graph.outputValues.at(static_cast<std::size_t>(output.integer))));
      continue;
    }
    Binding literal;
    if (output.kind != Argument::Kind::none) literal.number = output;
    results.push_back(literal);
  }
  return results;
}

void JointBuilder::bindResults(BoundSymbolId op, const std::vector<Binding>& results) {
  const auto outputs = std::as_const(document_).outputs(op);
  for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i)
    if (outputs[i]) bindings_[static_cast<std::size_t>(outputs[i].index)] = results[i];
}

bool JointBuilder::truth(const Binding& predicate) {
  if (predicate.number) return predicate.number->asDouble() != 0;
  const bool taken = real(predicate.value).item().toBool();
  result_.dataDependent.push_back("the branch taken on " + document_.displayName(predicate.value));
  return taken;
}

void JointBuilder::applyHigherOrder(BoundSymbolId op) {
  const std::string name = document_.symbol(document_.boundSymbol(op).symbol).name;
  const auto kind = name.substr(name.find('.') + 1);
  const CallPattern pattern = document_.pattern(document_.boundSymbol(op).pattern);
  const auto parts = partsOf(pattern);
  if (kind.starts_with("with_effects")) return applyWithEffects(op, pattern);
  if (parts.graphs.empty()) throw Error(ErrorCode::unsupportedOp, "this higher-order op is not supported", name);
  const auto saved = region_;
  if (kind.starts_with("cond")) return runCond(op, parts.before, parts.graphs, parts.after);
  if (kind.starts_with("scan")) return runScan(op, parts.graphs, parts.after);
  if (kind.starts_with("map_impl") || kind.starts_with("map")) return runMap(op, parts.graphs, parts.after);
  if (kind.starts_with("while_loop")) return runWhile(op, parts.graphs, parts.after);
  if (kind.starts_with("wrap_with_set_grad_enabled")) {
    region_.gradMode = region_.gradMode && at(parts.before, 0, name).integer != 0;
  } else if (kind.starts_with("wrap_with_autocast")) {
    region_.autocast.active = true;
    region_.autocast.device = deviceFromString(at(parts.before, 0, name).text).type;
    const auto& dtype = at(parts.before, 1, name);
    region_.autocast.dtype = dtype.kind == Argument::Kind::dtype ? std::optional(static_cast<DType>(dtype.integer)) : std::nullopt;
    region_.autocast.enabled = at(parts.before, 2, name).integer != 0;
  } else if (!kind.starts_with("invoke_subgraph") && !kind.starts_with("tag_activation_checkpoint") && !kind.starts_with("wrap") &&
             !kind.starts_with("hints_wrapper")) {
    throw Error(ErrorCode::unsupportedOp, "this higher-order op is not supported", name);
  }
  std::vector<Binding> arguments;
  const Subgraph graph = document_.subgraph(parts.graphs[0]);
  for (const auto& argument : parts.after) {
    if (argument.kind == Argument::Kind::string) continue;  // invoke_subgraph names its subgraph
    for (auto& binding : bindingsOf(op, argument)) arguments.push_back(std::move(binding));
  }
  if (arguments.size() > graph.inputs.size()) arguments.resize(graph.inputs.size());  // trailing keyword arguments
  auto results = inlineSubgraph(graph, arguments);
  region_ = saved;
  if (kind.starts_with("tag_activation_checkpoint"))
    for (auto& result : results) result = shallowCopy(op, result);
  bindResults(op, results);
}

/// A checkpoint's result under a value of its own (A23, A24): who reads it outside of the region has it saved, the region's own
/// backward has it recomputed.
Binding JointBuilder::shallowCopy(BoundSymbolId op, const Binding& result) {
  if (!result.value || !document_.isTensor(result.value)) return result;
  Binding copy;
  copy.value = call(op, "aten.alias.default", {{Argument::ofOperand(0)}, {}, 1, {}}, {result.value});
  adoptAliases(copy);
  return copy;
}

void JointBuilder::runCond(BoundSymbolId op, const std::vector<Argument>& before, const std::vector<SubgraphId>& graphs, const std::vector<Argument>& after) {
  if (graphs.size() != 2) throw Error(ErrorCode::badInput, "cond needs two branches");
  const bool taken = truth(bindingOf(op, at(before, 0, "cond")));
  std::vector<Binding> arguments;
  for (const auto& argument : after)
    for (auto& binding : bindingsOf(op, argument)) arguments.push_back(std::move(binding));
  const Subgraph graph = document_.subgraph(graphs[taken ? 0 : 1]);
  bindResults(op, inlineSubgraph(graph, arguments));
}

Binding JointBuilder::select(BoundSymbolId op, const Binding& stacked, std::int64_t index) {
  Binding slice;
  slice.value = call(op, "aten.select.int", {{Argument::ofOperand(0), Argument::ofInt(0), Argument::ofInt(index)}, {}, 1, {}}, {stacked.value});
  adoptAliases(slice);
  return slice;
}

Binding JointBuilder::stack(BoundSymbolId op, const std::vector<Binding>& slices) {
  Argument list = Argument::ofList({});
  std::vector<ValueId> tensors;
  for (const auto& slice : slices) {
    list.items.push_back(Argument::ofOperand(static_cast<std::int64_t>(tensors.size())));
    tensors.push_back(slice.value);
  }
  Binding stacked;
  stacked.value = call(op, "aten.stack.default", {{list, Argument::ofInt(0)}, {}, 0, {}}, tensors);
  adoptAliases(stacked);
  return stacked;
}

std::int64_t JointBuilder::leadingSize(const std::vector<Binding>& stacked, std::string_view op) const {
  if (stacked.empty() || !stacked[0].value || document_.meta(document_.value(stacked[0].value).meta).sizes.empty())
    throw Error(ErrorCode::unsupportedOp, "a loop over nothing cannot be unrolled", std::string(op));
  return document_.meta(document_.value(stacked[0].value).meta).sizes[0];
}

void JointBuilder::runScan(BoundSymbolId op, const std::vector<SubgraphId>& graphs, const std::vector<Argument>& after) {
  auto carry = bindingsOf(op, at(after, 0, "scan"));
  const auto stacked = bindingsOf(op, at(after, 1, "scan"));
  const auto additional = after.size() > 2 ? bindingsOf(op, after[2]) : std::vector<Binding>();
  const Subgraph graph = document_.subgraph(graphs[0]);
  std::vector<std::vector<Binding>> outputs;
  for (std::int64_t i = 0, n = leadingSize(stacked, "scan"); i < n; ++i) {
    auto arguments = carry;
    for (const auto& x : stacked) arguments.push_back(select(op, x, i));
    arguments.insert(arguments.end(), additional.begin(), additional.end());
    const auto results = inlineSubgraph(graph, arguments);
    outputs.resize(results.size() - carry.size());
    for (std::size_t k = carry.size(); k < results.size(); ++k) outputs[k - carry.size()].push_back(results[k]);
    std::copy_n(results.begin(), carry.size(), carry.begin());
  }
  for (const auto& slices : outputs) carry.push_back(stack(op, slices));
  bindResults(op, carry);
}

void JointBuilder::runMap(BoundSymbolId op, const std::vector<SubgraphId>& graphs, const std::vector<Argument>& after) {
  const auto stacked = bindingsOf(op, at(after, 0, "map"));
  const auto additional = after.size() > 1 ? bindingsOf(op, after[1]) : std::vector<Binding>();
  const Subgraph graph = document_.subgraph(graphs[0]);
  std::vector<std::vector<Binding>> outputs;
  for (std::int64_t i = 0, n = leadingSize(stacked, "map"); i < n; ++i) {
    std::vector<Binding> arguments;
    for (const auto& x : stacked) arguments.push_back(select(op, x, i));
    arguments.insert(arguments.end(), additional.begin(), additional.end());
    const auto results = inlineSubgraph(graph, arguments);
    outputs.resize(results.size());
    for (std::size_t k = 0; k < results.size(); ++k) outputs[k].push_back(results[k]);
  }
  std::vector<Binding> results;
  for (const auto& slices : outputs) results.push_back(stack(op, slices));
  bindResults(op, results);
}

void JointBuilder::runWhile(BoundSymbolId op, const std::vector<SubgraphId>& graphs, const std::vector<Argument>& after) {
  if (graphs.size() != 2) throw Error(ErrorCode::badInput, "while_loop needs a condition and a body");
  auto carry = bindingsOf(op, at(after, 0, "while_loop"));
  const auto additional = after.size() > 1 ? bindingsOf(op, after[1]) : std::vector<Binding>();
  const Subgraph condition = document_.subgraph(graphs[0]), body = document_.subgraph(graphs[1]);
  for (;;) {
    auto arguments = carry;
    arguments.insert(arguments.end(), additional.begin(), additional.end());
    const auto go = inlineSubgraph(condition, arguments);
    if (go.empty() || !truth(go[0])) break;
    carry = inlineSubgraph(body, arguments);
  }
  bindResults(op, carry);
}

/// The wrapped op behind a token: arguments are (token, op, its arguments...), results are (token, its results...).
void JointBuilder::applyWithEffects(BoundSymbolId op, const CallPattern& pattern) {
  if (pattern.arguments.size() < 2 || pattern.arguments[1].kind != Argument::Kind::op)
    throw Error(ErrorCode::badInput, "with_effects names no op", "torch.ops.higher_order.with_effects");
  std::string wrapped = pattern.arguments[1].text;
  if (wrapped.starts_with("torch.ops.")) wrapped.erase(0, 10);
  std::vector<Binding> results{bindingOf(op, pattern.arguments[0])};
  if (!wrapped.starts_with("aten._assert") && !wrapped.starts_with("aten._print")) {
    const auto allowed = lookupSymbol(wrapped);  // the name comes from the file: only allow-listed ops run
    if (!allowed) throw Error(ErrorCode::unknownOp, "LibTorch has no such op, or it may not run from a file", wrapped);
    const auto symbol = document_.internSymbol(*allowed);
    CallPattern inner;
    inner.arguments.assign(document_.symbol(symbol).arguments.size(), Argument::ofMissing());
    std::vector<ValueId> tensors;
    std::size_t position = 0;
    for (std::size_t i = 2; i < pattern.arguments.size(); ++i) {
      const bool named = i < pattern.names.size() && !pattern.names[i].empty();
      const auto slot = named ? document_.symbol(symbol).argumentIndex(pattern.names[i]) : static_cast<int>(position++);
      if (slot < 0 || static_cast<std::size_t>(slot) >= inner.arguments.size()) throw Error(ErrorCode::badInput, "an argument does not fit the schema", wrapped);
      auto argument = pattern.arguments[i];
      if (argument.kind == Argument::Kind::operand) {
        const auto binding = bindingOf(op, argument);
        if (binding.number) argument = *binding.number;
        else {
          argument.integer = static_cast<std::int64_t>(tensors.size());
          tensors.push_back(binding.value);
        }
      }
      inner.arguments[static_cast<std::size_t>(slot)] = argument;
    }
    inner.operandCount = static_cast<std::int32_t>(tensors.size());
    const auto instance = apply(op, symbol, document_.internPattern(inner), tensors, region_.gradMode);
    for (std::size_t i = 0; i < instance.rule->outputs.size(); ++i) {
      Binding binding;
      binding.value = output(instance, i);
      results.push_back(binding);
    }
  }
  bindResults(op, results);
}

}  // namespace retrograd
