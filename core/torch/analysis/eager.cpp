#include "core/torch/analysis/eager.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "core/derivation/loop_limits.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/grad/number_ops.h"
#include "core/torch/tracing/extra_derivatives.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/last_use.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

bool truth(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().item().toBool() : value.isBool() ? value.toBool() : value.toInt() != 0;
}

class Autocast {
 public:
  explicit Autocast(const std::vector<Argument>& before) : device_(toTorchDevice(before.at(0).text).type()) {
    enabled_ = at::autocast::is_autocast_enabled(device_);
    dtype_ = at::autocast::get_autocast_dtype(device_);
    at::autocast::set_autocast_enabled(device_, before.at(2).integer != 0);
    if (before.at(1).kind == Argument::Kind::dtype)
      at::autocast::set_autocast_dtype(device_, toScalarType(static_cast<DType>(before.at(1).integer)));
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }

 private:
  at::DeviceType device_;
  bool enabled_;
  at::ScalarType dtype_;
};

}  // namespace

EagerInterpreter::EagerInterpreter(const Analysis& analysis) : analysis_(analysis), document_(*analysis.document) {
  registerExtraDerivatives();
  if (!analysis.leftOut) return;
  left_.filled = analysis.leftOut->filled;
  walk_.emplace(document_, left_);
}

const c10::IValue& EagerInterpreter::value(ValueId id) const {
  const auto it = values_.find(id.index);
  if (isLeftOut(id))
    throw Error(ErrorCode::execution,
                "it depends on the opaque op " + document_.opName(left_.reason(id)) + ", which does not run",
                document_.displayName(id));
  if (it == values_.end()) throw Error(ErrorCode::internal, "the value is not there", document_.displayName(id));
  return it->second;
}

void EagerInterpreter::run(const std::vector<BoundSymbolId>& ops) {
  for (auto op : ops) runAny(op);
}

void EagerInterpreter::runTrace(const Trace& trace) {
  const LastUses lastUses(document_, trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    runAny(trace.ops[i]);
    for (auto id : lastUses.values(i)) values_.erase(id.index);
  }
}

void EagerInterpreter::runAny(BoundSymbolId op) {
  const auto& symbol = document_.symbol(op);
  if (walk_) walk_->visit(op);
  if (left_.isLeftOut(op)) {
    for (auto output : document_.outputs(op))
      if (const auto filled = left_.filled.find(output); filled != left_.filled.end())
        bind(output, borrowTensor(filled->second).clone());
    return;
  }
  if (symbol.isHigherOrder) runHigherOrder(op);
  else if (symbol.name == "pippy._pipe_split.default") return;
  else if (symbol.schema.empty()) runNumber(op);
  else runOp(op);
}

void EagerInterpreter::bind(ValueId id, c10::IValue value) {
  if (value.isTensor()) files_.add(hostMemoryOf(value.toTensor()));
  values_[id.index] = std::move(value);
}

c10::IValue EagerInterpreter::argument(BoundSymbolId op, const Argument& argument) const {
  return toIValue(argument, c10::AnyType::get(), [&](std::size_t hole) { return value(document_.operands(op)[hole]); });
}

std::vector<c10::IValue> EagerInterpreter::arguments(BoundSymbolId op, const Argument& list) const {
  if (list.kind != Argument::Kind::list) return {argument(op, list)};
  std::vector<c10::IValue> values;
  for (const auto& item : list.items) values.push_back(argument(op, item));
  return values;
}

void EagerInterpreter::bindOutputs(BoundSymbolId op, const std::vector<c10::IValue>& results) {
  const auto outputs = document_.outputs(op);
  for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i) {
    if (!outputs[i]) continue;
    if (onTensor_ && results[i].isTensor() && results[i].toTensor().defined()) onTensor_(results[i].toTensor());
    bind(outputs[i], results[i]);
  }
}

void EagerInterpreter::runOp(BoundSymbolId op) {
  const auto& bound = document_.boundSymbol(op);
  const auto& symbol = document_.symbol(bound.symbol);
  if (symbol.returns.empty() && hasTrait(symbol.name, OpTrait::check)) return;
  const auto handle = requireOperator(symbol.name);
  auto stack = PreparedCall(handle, document_.pattern(bound.pattern)).arguments([&](std::size_t hole) {
    return value(document_.operands(op)[hole]);
  });
  at::AutoGradMode gradMode(bound.gradMode && at::GradMode::is_enabled());
  handle.callBoxed(stack);
  files_.requireUnchanged();
  auto results = flatten(stack);
  // A decomposed graph's detach is an alias; in a view of a tensor that requires grad, no_grad alone does not cut the
  // graph.
  if (!bound.gradMode && symbol.name == "aten.alias.default") results[0] = results[0].toTensor().detach();
  bindOutputs(op, results);
}

void EagerInterpreter::runNumber(BoundSymbolId op) {
  const auto& bound = document_.boundSymbol(op);
  std::vector<Argument> operands;
  for (const auto& a : document_.pattern(bound.pattern).arguments) {
    if (a.kind == Argument::Kind::missing) continue;
    const auto number = numberArgument(argument(op, a));
    operands.push_back(number ? *number : Argument::ofNone());
  }
  const auto result = evaluateNumberOp(document_.symbol(bound.symbol).name, operands);
  if (!result) throw Error(ErrorCode::unknownOp, "no such op is known here", document_.opName(op));
  bindOutputs(op, {toIValue(*result, c10::AnyType::get(), {})});
}

std::vector<c10::IValue> EagerInterpreter::runSubgraph(const Subgraph& graph,
                                                       const std::vector<c10::IValue>& arguments) {
  for (std::size_t i = 0; i < graph.inputs.size() && i < arguments.size(); ++i)
    if (graph.inputs[i]) bind(graph.inputs[i], arguments[i]);
  run(graph.ops);
  std::vector<c10::IValue> results;
  for (const auto& output : graph.outputs)
    results.push_back(
        toIValue(output, c10::AnyType::get(), [&](std::size_t hole) { return value(graph.outputValues.at(hole)); }));
  for (const auto op : graph.ops)
    for (const auto made : document_.outputs(op)) values_.erase(made.index);
  return results;
}

void EagerInterpreter::runHigherOrder(BoundSymbolId op) {
  const auto& bound = document_.boundSymbol(op);
  const std::string& name = document_.symbol(bound.symbol).name;
  const std::string kind = name.substr(name.find('.') + 1);
  const auto& pattern = document_.pattern(bound.pattern);
  if (hasTrait(name, OpTrait::ordersEffects)) return runWithEffects(op, pattern);
  std::vector<Argument> before, after;
  std::vector<const Subgraph*> graphs;
  for (const auto& a : pattern.arguments) {
    if (a.kind == Argument::Kind::subgraph) graphs.push_back(&document_.subgraph(SubgraphId(a.integer)));
    else if (a.kind != Argument::Kind::missing) (graphs.empty() ? before : after).push_back(a);
  }
  if (graphs.empty()) throw Error(ErrorCode::unsupportedOp, "this higher-order op is not supported", name);
  std::vector<std::vector<c10::IValue>> lists;
  std::vector<c10::IValue> flat;
  for (const auto& a : after) {
    if (a.kind == Argument::Kind::string) continue;
    lists.push_back(arguments(op, a));
    flat.insert(flat.end(), lists.back().begin(), lists.back().end());
  }
  if (kind.starts_with("cond"))
    return bindOutputs(op, runSubgraph(truth(argument(op, before.at(0))) ? *graphs.at(0) : *graphs.at(1), flat));
  if (kind.starts_with("scan") || kind.starts_with("map")) return bindOutputs(op, loop(kind, *graphs[0], lists));
  if (kind.starts_with("while_loop")) {
    auto carry = lists.at(0);
    for (std::int64_t steps = 0;; ++steps) {
      if (steps > mostLoopSteps)
        throw Error(ErrorCode::unsupportedOp,
                    "it runs for more than " + std::to_string(mostLoopSteps) + " steps; does this loop end?", name);
      auto all = carry;
      if (lists.size() > 1) all.insert(all.end(), lists[1].begin(), lists[1].end());
      if (!truth(runSubgraph(*graphs.at(0), all).at(0))) break;
      carry = runSubgraph(*graphs.at(1), all);
    }
    return bindOutputs(op, carry);
  }
  if (hasTrait(name, OpTrait::setsGradMode)) {
    at::AutoGradMode gradMode(before.at(0).integer != 0 && at::GradMode::is_enabled());
    return bindOutputs(op, runSubgraph(*graphs[0], flat));
  }
  if (hasTrait(name, OpTrait::setsAutocast)) {
    Autocast autocast(before);
    return bindOutputs(op, runSubgraph(*graphs[0], flat));
  }
  bindOutputs(op, runSubgraph(*graphs[0], flat));
}

/// scan(init, xs, additional) and map(xs, additional), slice by slice. Files of PyTorch 2.6 and older have scan(init,
/// xs, dim, reverse, additional).
std::vector<c10::IValue> EagerInterpreter::loop(const std::string& kind, const Subgraph& graph,
                                                const std::vector<std::vector<c10::IValue>>& lists) {
  const bool carries = kind.starts_with("scan");
  auto carry = carries ? lists.at(0) : std::vector<c10::IValue>();
  const auto& stacked = lists.at(carries ? 1 : 0);
  if (carries && stacked.empty()) return carry;
  const bool older = carries && lists.size() > 3 && lists[2].size() == 1 && lists[2][0].isInt();
  const bool reverse = older && lists[3].at(0).toBool();
  const std::size_t next = older ? 4 : carries ? 2 : 1;
  const auto additional = lists.size() > next ? lists[next] : std::vector<c10::IValue>();
  const auto n = stacked.at(0).toTensor().size(0);
  if (graph.outputs.size() < carry.size() || n == 0 || n > mostLoopSteps)
    throw Error(ErrorCode::badInput, "it cannot be run", kind);  // derivation says why
  std::vector<std::vector<at::Tensor>> slices(graph.outputs.size() - carry.size());
  for (std::int64_t i = 0; i < n; ++i) {
    auto all = carry;
    for (const auto& x : stacked) all.push_back(x.toTensor().select(0, reverse ? n - 1 - i : i));
    all.insert(all.end(), additional.begin(), additional.end());
    const auto results = runSubgraph(graph, all);
    for (std::size_t k = carry.size(); k < results.size(); ++k)
      slices[k - carry.size()].push_back(results[k].toTensor());
    std::copy_n(results.begin(), carry.size(), carry.begin());
  }
  for (auto& parts : slices) {
    if (reverse) std::ranges::reverse(parts);
    carry.emplace_back(at::stack(parts));
  }
  return carry;
}

void EagerInterpreter::runWithEffects(BoundSymbolId op, const CallPattern& pattern) {
  std::string wrapped = pattern.arguments.at(1).text;
  if (wrapped.starts_with("torch.ops.")) wrapped.erase(0, 10);
  std::vector<c10::IValue> results{argument(op, pattern.arguments[0])};
  if (!hasTrait(wrapped, OpTrait::check) && !hasTrait(wrapped, OpTrait::prints)) {
    const auto symbol = lookupSymbol(wrapped);
    if (!symbol) throw Error(ErrorCode::unknownOp, "LibTorch has no such op, or it may not run from a file", wrapped);
    CallPattern inner;
    inner.arguments.assign(symbol->arguments.size(), Argument::ofMissing());
    std::size_t position = 0;
    for (std::size_t i = 2; i < pattern.arguments.size(); ++i) {
      const bool named = i < pattern.names.size() && !pattern.names[i].empty();
      inner.arguments.at(named ? static_cast<std::size_t>(symbol->argumentIndex(pattern.names[i])) : position++) =
          pattern.arguments[i];
    }
    const auto handle = requireOperator(wrapped);
    auto stack =
        PreparedCall(handle, inner).arguments([&](std::size_t hole) { return value(document_.operands(op)[hole]); });
    handle.callBoxed(stack);
    for (auto& value : flatten(stack)) results.push_back(value);
  }
  bindOutputs(op, results);
}

}  // namespace retrograd
