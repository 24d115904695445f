#include "core/trace/verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/id_vector.h"

namespace retrograd {
namespace {

class Verifier {
 public:
  Verifier(const Document& document, const Trace& trace)
      : document_(document), trace_(trace), defined_(document.valueCount()) {}

  std::vector<Problem> run() {
    for (auto input : trace_.inputs) define(input, {}, "input");
    checkOps(trace_.ops);
    for (auto output : trace_.outputs)
      if (output && (!inRange(output) || !isDefined(output)))
        add({}, fmt::format("result {} is not defined", show(output)));
    checkCounts();
    return std::move(problems_);
  }

 private:
  void add(BoundSymbolId op, std::string message) {
    Problem problem{Problem::Severity::error, std::move(message), std::string(trace_.name), op.index};
    if (op) problem.place = document_.opName(op);
    problems_.push_back(std::move(problem));
  }
  bool inRange(ValueId value) const { return value.index < static_cast<std::int64_t>(document_.valueCount()); }
  bool wasMet(ValueId value) const { return defined_[value]; }
  /// A literal inside a formula is there from the start.
  bool isDefined(ValueId value) const {
    const auto& v = document_.value(value);
    return wasMet(value) || (v.kind == ValueKind::constant && !v.producer);
  }
  std::string show(ValueId value) const {
    return inRange(value) ? document_.displayName(value) : fmt::format("#{}", value.index);
  }

  void define(ValueId value, BoundSymbolId op, std::string_view what) {
    if (!value) return;
    if (!inRange(value)) return add(op, fmt::format("{} {} is out of range", what, show(value)));
    if (wasMet(value)) return add(op, fmt::format("{} is defined twice", show(value)));
    defined_[value] = true;
    if (const auto& v = document_.value(value);
        v.meta && !v.storage && document_.meta(v.meta).layout == Layout::strided)
      add(op, fmt::format("tensor {} has no storage", show(value)));
  }

  void checkOps(const std::vector<BoundSymbolId>& ops) {
    for (auto op : ops) {
      if (!op || op.index >= static_cast<std::int64_t>(document_.boundSymbolCount())) {
        add({}, fmt::format("op #{} is out of range", op.index));
        continue;
      }
      const auto& bound = document_.boundSymbol(op);
      if (!bound.symbol || !bound.pattern || bound.symbol.index >= static_cast<std::int64_t>(document_.symbolCount()) ||
          bound.pattern.index >= static_cast<std::int64_t>(document_.patternCount())) {
        problems_.push_back(
            {Problem::Severity::error, "symbol or call pattern is out of range", trace_.name, op.index});
        continue;
      }
      checkOperands(op);
      checkHoles(op);
      for (const auto& argument : document_.pattern(bound.pattern).arguments) checkSubgraphs(argument);
      checkOutputs(op);
      if (trace_.kind != TraceKind::computation) checkOrigin(op);
    }
  }

  void checkOperands(BoundSymbolId op) {
    for (auto operand : document_.operands(op)) {
      if (!operand) continue;
      if (!inRange(operand)) add(op, fmt::format("operand {} is out of range", show(operand)));
      else if (!isDefined(operand)) add(op, fmt::format("operand {} is used before it is defined", show(operand)));
    }
  }

  void checkHoles(BoundSymbolId op) {
    const auto& bound = document_.boundSymbol(op);
    const auto& pattern = document_.pattern(bound.pattern);
    if (pattern.operandCount != bound.operandCount)
      return add(op,
                 fmt::format("the call has {} holes, the op {} operands", pattern.operandCount, bound.operandCount));
    std::vector<bool> filled(bound.operandCount);
    for (const auto& argument : pattern.arguments)
      forEachOperand(argument, [&](std::size_t hole) {
        if (hole < filled.size()) filled[hole] = true;
        else add(op, fmt::format("hole {} is beyond the {} operands", hole, filled.size()));
      });
    for (std::size_t i = 0; i < filled.size(); ++i)
      if (!filled[i]) add(op, fmt::format("operand {} fills no hole", i));
  }

  void checkSubgraphs(const Argument& argument) {
    if (argument.kind == Argument::Kind::subgraph) {
      const auto& body = document_.subgraph(SubgraphId(argument.integer));
      for (auto input : body.inputs)  // a body may be given the very values of the graph around it
        if (!input || !inRange(input) || !isDefined(input)) define(input, {}, "input of a body");
      checkOps(body.ops);
      for (auto output : body.outputValues)
        if (output && (!inRange(output) || !isDefined(output)))
          add({}, fmt::format("result {} of {} is not defined", show(output), body.name));
    }
    for (const auto& item : argument.items) checkSubgraphs(item);
  }

  void checkOutputs(BoundSymbolId op) {
    const auto& bound = document_.boundSymbol(op);
    const auto& symbol = document_.symbol(bound.symbol);
    const auto& returns = document_.pattern(bound.pattern).returns;
    std::size_t expected = 0;
    for (auto count : returns) expected += count < 0 ? 1 : count;
    if (!returns.empty() && expected != bound.outputCount)
      add(op, fmt::format("the call returns {} values, the op has {} outputs", expected, bound.outputCount));
    const bool isArithmetic =
        symbol.schema.empty() && symbol.returns.empty();  // of numbers: no schema to hold it against
    const bool flat = returns.empty() && symbol.known && !symbol.isHigherOrder && !isArithmetic;
    if (flat && symbol.returns.size() != bound.outputCount)
      add(op,
          fmt::format("the schema returns {} values, the op has {} outputs", symbol.returns.size(), bound.outputCount));

    const auto operands = document_.operands(op);
    const auto outputs = document_.outputs(op);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool returnsOperand = std::find(operands.begin(), operands.end(), outputs[i]) != operands.end();
      if (!returnsOperand) define(outputs[i], op, "output");
      const bool isTensor = flat && i < symbol.returns.size() && symbol.returns[i].type == "Tensor";
      const bool mustHaveType =
          trace_.kind != TraceKind::computation;  // whose types the grad transform finds where they are not given
      if (mustHaveType && isTensor && outputs[i] && inRange(outputs[i]) && !document_.isTensor(outputs[i]))
        add(op, fmt::format("tensor {} has no shape and dtype", show(outputs[i])));
    }
  }

  void checkOrigin(BoundSymbolId op) {
    const auto& origin = document_.boundSymbol(op).origin;
    if (origin.role == Role::none) return add(op, "has no origin");
    if (!origin.op && !origin.value)
      add(op, fmt::format("its origin ({}) names neither an op nor a value", name(origin.role)));
    if (origin.op && document_.boundSymbol(origin.op).origin.role != Role::none)
      add(op, "its origin is not an op of the computation");
  }

  void checkCounts() {
    if (trace_.resultCount > trace_.outputs.size()) add({}, "more results than outputs");
    if (trace_.savedCount > trace_.inputs.size()) add({}, "more saved values than inputs");
    if (trace_.forwardCount > trace_.ops.size()) add({}, "more forward ops than ops");
  }

  const Document& document_;
  const Trace& trace_;
  IdVector<ValueId, bool> defined_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> verify(const Document& document, const Trace& trace) { return Verifier(document, trace).run(); }

}  // namespace retrograd
