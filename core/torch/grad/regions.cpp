// Higher-order ops: their subgraphs are inlined, under the grad mode and autocast that they set; loops unroll.
#include <algorithm>
#include <map>
#include <utility>

#include "core/derivation/loop_limits.h"
#include "core/torch/grad/joint_builder.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/op_traits.h"

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
    else if (argument.kind != Argument::Kind::missing)
      (parts.graphs.empty() ? parts.before : parts.after).push_back(argument);
  }
  return parts;
}

const Argument& at(const std::vector<Argument>& arguments, std::size_t i, std::string_view op) {
  if (i >= arguments.size()) throw Error(ErrorCode::badInput, "it has too few arguments", std::string(op));
  return arguments[i];
}

/// Counts the steps of a loop that is unrolled and what it unrolls to; `joint`: the ops so far.
class LoopLimit {
 public:
  LoopLimit(std::string_view op, const std::vector<BoundSymbolId>& joint)
      : op_(op), joint_(joint), begin_(joint.size()) {}

  void step() {
    if (++steps_ > mostLoopSteps)
      throw Error(
          ErrorCode::unsupportedOp,
          "it is unrolled and runs for more than " + std::to_string(mostLoopSteps) + " steps; does this loop end?",
          op_);
    if (joint_.size() - begin_ > mostLoopOps)
      throw Error(
          ErrorCode::unsupportedOp,
          "it unrolls to more than " + std::to_string(mostLoopOps) + " ops, after " + std::to_string(steps_) + " steps",
          op_);
  }

 private:
  std::string op_;
  const std::vector<BoundSymbolId>& joint_;
  std::size_t begin_;
  std::int64_t steps_ = 0;
};

void requireResults(const Subgraph& body, std::size_t least, bool exactly, std::string_view op) {
  const auto count = body.outputs.size();
  if (count == least || (!exactly && count > least)) return;
  throw Error(
      ErrorCode::badInput,
      "its body " + body.name + " returns " + std::to_string(count) + " values and carries " + std::to_string(least),
      std::string(op));
}

/// What a scan runs over: (init, xs, additional), in files of PyTorch 2.6 and older (init, xs, dim, reverse,
/// additional).
struct ScanArguments {
  Argument init, stacked, additional = Argument::ofList({});
  bool reverse = false;
};

ScanArguments scanArguments(const std::vector<Argument>& after) {
  ScanArguments scan{at(after, 0, "scan"), at(after, 1, "scan")};
  std::size_t next = 2;
  if (after.size() > 3 && after[2].kind == Argument::Kind::integer && after[3].kind == Argument::Kind::boolean) {
    if (after[2].integer != 0)
      throw Error(ErrorCode::unsupportedOp,
                  "it runs along dimension " + std::to_string(after[2].integer) + "; only 0 is supported", "scan");
    scan.reverse = after[3].integer != 0;
    next = 4;
  }
  if (after.size() > next) scan.additional = after[next];
  return scan;
}

Binding literalBinding(const Argument& argument) {
  return {.number = argument.kind == Argument::Kind::none ? std::nullopt : std::optional(argument)};
}

}  // namespace

Binding JointBuilder::bindingOf(BoundSymbolId op, const Argument& argument) {
  return argument.kind == Argument::Kind::operand ? resolve(document_.operands(op)[argument.integer])
                                                  : literalBinding(argument);
}

std::vector<Binding> JointBuilder::bindingsOf(BoundSymbolId op, const Argument& list) {
  std::vector<Binding> bindings;
  if (list.kind == Argument::Kind::list)
    for (const auto& item : list.items) bindings.push_back(bindingOf(op, item));
  else bindings.push_back(bindingOf(op, list));
  return bindings;
}

std::vector<Binding> JointBuilder::inlineSubgraph(const Subgraph& graph, const std::vector<Binding>& arguments) {
  if (arguments.size() != graph.inputs.size())
    throw Error(ErrorCode::badInput,
                "it is called with " + std::to_string(arguments.size()) + " values and takes " +
                    std::to_string(graph.inputs.size()),
                "subgraph " + graph.name);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (graph.inputs[i]) bindings_[graph.inputs[i]] = arguments[i];
  walk(graph.ops);
  std::vector<Binding> results;
  for (const auto& output : graph.outputs) {
    const bool isOperand = output.kind == Argument::Kind::operand;
    results.push_back(isOperand ? resolve(graph.outputValues.at(output.integer)) : literalBinding(output));
  }
  return results;
}

void JointBuilder::bindResults(BoundSymbolId op, const std::vector<Binding>& results) {
  const auto outputs = std::as_const(document_).outputs(op);
  for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i)
    if (outputs[i]) bindings_[outputs[i]] = results[i];
}

bool JointBuilder::truth(const Binding& predicate) {
  if (predicate.number) return predicate.number->asDouble() != 0;
  if (!predicate.value) throw Error(ErrorCode::badInput, "its condition is None");
  const bool taken = rules_.real(valueOf(predicate)).item().toBool();
  result_.dataDependent.push_back("the branch taken on " + document_.displayName(predicate.value));
  return taken;
}

void JointBuilder::applyHigherOrder(BoundSymbolId op) {
  const std::string name = document_.symbol(op).name;
  const auto kind = name.substr(name.find('.') + 1);
  const CallPattern pattern = document_.pattern(document_.boundSymbol(op).pattern);
  const auto parts = partsOf(pattern);
  if (hasTrait(name, OpTrait::ordersEffects)) return applyWithEffects(op, pattern);
  if (parts.graphs.empty()) throw Error(ErrorCode::unsupportedOp, "this higher-order op is not supported", name);
  const auto saved = region_;
  if (kind.starts_with("cond")) return runCond(op, parts.before, parts.graphs, parts.after);
  if (kind.starts_with("scan")) return runScan(op, parts.graphs, parts.after);
  if (kind.starts_with("map_impl") || kind.starts_with("map")) return runMap(op, parts.graphs, parts.after);
  if (kind.starts_with("while_loop")) return runWhile(op, parts.graphs, parts.after);
  if (hasTrait(name, OpTrait::setsGradMode)) {
    region_.gradMode = region_.gradMode && at(parts.before, 0, name).integer != 0;
  } else if (hasTrait(name, OpTrait::setsAutocast)) {
    region_.autocast.active = true;
    region_.autocast.device = deviceFromString(at(parts.before, 0, name).text).type;
    const auto& dtype = at(parts.before, 1, name);
    region_.autocast.dtype =
        dtype.kind == Argument::Kind::dtype ? std::optional(static_cast<DType>(dtype.integer)) : std::nullopt;
    region_.autocast.enabled = at(parts.before, 2, name).integer != 0;
  } else if (!hasTrait(name, OpTrait::passesOperands) && !kind.starts_with("wrap")) {
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
  if (hasTrait(name, OpTrait::runsAgain)) copyResults(op, arguments, results);
  bindResults(op, results);
}

/// A tensor that is returned twice, or that came in, stays one tensor: what changes its sizes in place later changes
/// them under each of its names.
void JointBuilder::copyResults(BoundSymbolId op, const std::vector<Binding>& arguments, std::vector<Binding>& results) {
  std::map<std::int32_t, Binding> copies;  // by tensor; none has an index where nothing is written
  for (const auto& argument : arguments)
    if (argument.tensor >= 0) copies[argument.tensor] = argument;
  for (auto& result : results) {
    if (result.tensor < 0) result = shallowCopy(op, result);
    else if (const auto known = copies.find(result.tensor); known != copies.end()) result = known->second;
    else result = copies[result.tensor] = shallowCopy(op, result);
  }
}

/// A checkpoint's result under a value of its own: who reads it outside of the region has it saved, the region's own
/// backward has it recomputed.
Binding JointBuilder::shallowCopy(BoundSymbolId op, const Binding& result) {
  if (!result.value || !document_.isTensor(result.value)) return result;
  return bindingTo(call1(op, "aten.alias.default", {}, valueOf(result)));
}

void JointBuilder::runCond(BoundSymbolId op, const std::vector<Argument>& before, const std::vector<SubgraphId>& graphs,
                           const std::vector<Argument>& after) {
  if (graphs.size() != 2) throw Error(ErrorCode::badInput, "cond needs two branches");
  const bool taken = truth(bindingOf(op, at(before, 0, "cond")));
  std::vector<Binding> arguments;
  for (const auto& argument : after)
    for (auto& binding : bindingsOf(op, argument)) arguments.push_back(std::move(binding));
  const Subgraph graph = document_.subgraph(graphs[taken ? 0 : 1]);
  bindResults(op, inlineSubgraph(graph, arguments));
}

Binding JointBuilder::select(BoundSymbolId op, const Binding& stacked, std::int64_t index) {
  return bindingTo(call1(op, "aten.select.int", {Argument::ofInt(0), Argument::ofInt(index)}, valueOf(stacked)));
}

Binding JointBuilder::stack(BoundSymbolId op, const std::vector<Binding>& slices) {
  Argument list = Argument::ofList({});
  std::vector<ValueId> tensors;
  for (const auto& slice : slices) {
    if (!slice.value)
      throw Error(ErrorCode::badInput, "its body returns a number or None where a tensor is stacked",
                  document_.opName(op));
    list.items.push_back(Argument::ofOperand(std::ssize(tensors)));
    tensors.push_back(valueOf(slice));
  }
  return bindingTo(call(op, "aten.stack.default", {{list, Argument::ofInt(0)}, {}, 0, {}}, tensors));
}

/// The one length of all tensors that a loop runs over.
std::int64_t JointBuilder::leadingSize(const std::vector<Binding>& stacked, std::string_view op) const {
  std::optional<std::int64_t> length;
  for (const auto& x : stacked) {
    const auto* meta = x.value && document_.isTensor(x.value) ? &document_.meta(x.value) : nullptr;
    if (!meta || meta->sizes.empty())
      throw Error(ErrorCode::badInput, "it can only run over tensors of at least one dimension", std::string(op));
    if (length && *length != meta->sizes[0])
      throw Error(ErrorCode::badInput,
                  "it runs over tensors of different lengths, " + std::to_string(*length) + " and " +
                      std::to_string(meta->sizes[0]),
                  std::string(op));
    length = meta->sizes[0];
  }
  if (!length) throw Error(ErrorCode::badInput, "it is given nothing to run over", std::string(op));
  if (*length == 0)
    throw Error(ErrorCode::badInput, "it runs over a length of 0, which PyTorch refuses too", std::string(op));
  return *length;
}

/// A body that runs over the slices of tensors. It returns the next `carry`, and behind it slices to be stacked.
struct JointBuilder::Loop {
  std::string_view name;
  SubgraphId body;
  std::vector<Binding> carry, stacked, additional;
  bool reverse;
};

void JointBuilder::unroll(BoundSymbolId op, Loop loop) {
  const Subgraph body = document_.subgraph(loop.body);
  auto& carry = loop.carry;
  std::vector<std::vector<Binding>> outputs(body.outputs.size() - carry.size());
  LoopLimit limit(loop.name, writer_.ops());
  for (std::int64_t i = 0, n = leadingSize(loop.stacked, loop.name); i < n; ++i) {
    limit.step();
    auto arguments = carry;
    for (const auto& x : loop.stacked) arguments.push_back(select(op, x, loop.reverse ? n - 1 - i : i));
    arguments.insert(arguments.end(), loop.additional.begin(), loop.additional.end());
    const auto results = inlineSubgraph(body, arguments);
    for (std::size_t k = carry.size(); k < results.size(); ++k) outputs[k - carry.size()].push_back(results[k]);
    std::copy_n(results.begin(), carry.size(), carry.begin());
  }
  for (auto& slices : outputs) {
    if (loop.reverse) std::ranges::reverse(slices);
    carry.push_back(stack(op, slices));
  }
  bindResults(op, carry);
}

void JointBuilder::runScan(BoundSymbolId op, const std::vector<SubgraphId>& graphs,
                           const std::vector<Argument>& after) {
  const auto scan = scanArguments(after);
  auto carry = bindingsOf(op, scan.init);
  const auto stacked = bindingsOf(op, scan.stacked), additional = bindingsOf(op, scan.additional);
  requireResults(document_.subgraph(graphs[0]), carry.size(), false, "scan");
  if (stacked.empty()) return bindResults(op, carry);  // as PyTorch does
  unroll(op, {"scan", graphs[0], std::move(carry), stacked, additional, scan.reverse});
}

void JointBuilder::runMap(BoundSymbolId op, const std::vector<SubgraphId>& graphs, const std::vector<Argument>& after) {
  const auto stacked = bindingsOf(op, at(after, 0, "map"));
  const auto additional = after.size() > 1 ? bindingsOf(op, after[1]) : std::vector<Binding>();
  unroll(op, {"map", graphs[0], {}, stacked, additional, false});
}

void JointBuilder::runWhile(BoundSymbolId op, const std::vector<SubgraphId>& graphs,
                            const std::vector<Argument>& after) {
  if (graphs.size() != 2) throw Error(ErrorCode::badInput, "while_loop needs a condition and a body");
  auto carry = bindingsOf(op, at(after, 0, "while_loop"));
  const auto additional = after.size() > 1 ? bindingsOf(op, after[1]) : std::vector<Binding>();
  const Subgraph condition = document_.subgraph(graphs[0]), body = document_.subgraph(graphs[1]);
  if (condition.outputs.size() != 1)
    throw Error(ErrorCode::badInput,
                "its condition returns " + std::to_string(condition.outputs.size()) + " values, not one", "while_loop");
  requireResults(body, carry.size(), true, "while_loop");
  for (LoopLimit limit("while_loop", writer_.ops());; limit.step()) {
    progress_.check();  // a body without ops comes by no other place that can be cancelled
    auto arguments = carry;
    arguments.insert(arguments.end(), additional.begin(), additional.end());
    if (!truth(inlineSubgraph(condition, arguments)[0])) break;
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
  if (!hasTrait(wrapped, OpTrait::check) && !hasTrait(wrapped, OpTrait::prints)) {
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
      if (slot < 0 || slot >= std::ssize(inner.arguments))
        throw Error(ErrorCode::badInput, "an argument does not fit the schema", wrapped);
      auto argument = pattern.arguments[i];
      if (argument.kind == Argument::Kind::operand) {
        const auto binding = bindingOf(op, argument);
        if (binding.number) argument = *binding.number;
        else {
          argument.integer = std::ssize(tensors);
          tensors.push_back(binding.value);
        }
      }
      inner.arguments[slot] = argument;
    }
    inner.operandCount = static_cast<std::int32_t>(tensors.size());
    const auto instance = apply(op, symbol, document_.internPattern(inner), tensors);
    for (std::size_t i = 0; i < instance.rule->outputs.size(); ++i) results.push_back(bindingTo(output(instance, i)));
  }
  bindResults(op, results);
}

}  // namespace retrograd
