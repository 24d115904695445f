#include "core/questions/references.h"

#include <algorithm>
#include <set>

#include "core/base/enum_array.h"

namespace retrograd {
namespace {

bool isForward(Role role) { return role == Role::none || role == Role::forward; }

class References {
 public:
  References(const Analysis& analysis, ValueId value) : document_(*analysis.document), value_(value) {
    look(analysis.computation().trace, analysis.computation().trace.ops.size());
    if (analysis.derived()) look(analysis.joint, analysis.joint.forwardCount);
    std::erase_if(found_, [&](const ValueReference& r) {
      return r.kind == ValueReference::Kind::gradient && onTheWay_.contains(r.value);
    });
    std::stable_sort(found_.begin(), found_.end(),
                     [](const ValueReference& a, const ValueReference& b) { return a.kind < b.kind; });
  }

  std::vector<ValueReference> take() { return std::move(found_); }

 private:
  void look(const Trace& trace, std::size_t forwardCount) {
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
      lookAtOutputs(trace, trace.ops[i]);
      lookAtOperands(trace, trace.ops[i], i < forwardCount);
    }
    for (auto output : trace.outputs)
      if (output == value_) add(ValueReference::Kind::result, trace, {});
  }

  void lookAtOutputs(const Trace& trace, BoundSymbolId op) {
    const auto& origin = document_.boundSymbol(op).origin;
    const bool leadsToGradient = origin.value && !isForward(origin.role) && origin.role != Role::recompute;
    for (auto output : document_.outputs(op)) {
      if (!output) continue;
      if (output == value_) {
        add(ValueReference::Kind::producer, trace, op);
        if (leadsToGradient)
          add(ValueReference::Kind::gradientOf, trace, document_.value(origin.value).producer).value = origin.value;
      } else if (leadsToGradient && origin.value == value_ && isGradient(output)) {
        add(ValueReference::Kind::gradient, trace, op).value = output;
      }
    }
    // What a formula's later ops read is on the way to the gradient; only what is summed or handed on is one.
    if (leadsToGradient && origin.value == value_ && origin.role != Role::accumulation)
      for (auto operand : document_.operands(op)) onTheWay_.insert(operand);
  }

  bool isGradient(ValueId output) const {
    const auto &mine = document_.value(value_), &theirs = document_.value(output);
    return mine.meta && theirs.meta && document_.meta(mine.meta).sizes == document_.meta(theirs.meta).sizes;
  }

  void lookAtOperands(const Trace& trace, BoundSymbolId op, bool inForward) {
    const auto operands = document_.operands(op);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (operands[k] != value_) continue;
      const auto producer = document_.value(value_).producer;
      const bool made = producer && !isForward(document_.boundSymbol(producer).origin.role);
      auto& use = add(inForward ? ValueReference::Kind::user
                      : made    ? ValueReference::Kind::backwardUser
                                : ValueReference::Kind::savedFor,
                      trace, op);
      use.operand = k;
      use.argument = argumentName(document_, op, k);
    }
  }

  ValueReference& add(ValueReference::Kind kind, const Trace& trace, BoundSymbolId op) {
    ValueReference reference;
    reference.kind = kind;
    reference.trace = trace.kind;
    reference.op = op;
    found_.push_back(std::move(reference));
    return found_.back();
  }

  const Document& document_;
  ValueId value_;
  std::set<ValueId> onTheWay_;
  std::vector<ValueReference> found_;
};

}  // namespace

std::string_view name(ValueReference::Kind kind) {
  static constexpr EnumArray<ValueReference::Kind, std::string_view, 7> names{
      "made by", "read by", "saved for", "backward, read by", "its gradient", "gradient of", "result"};
  return names[kind];
}

std::vector<ValueReference> referencesOf(const Analysis& analysis, ValueId value) {
  if (!value) return {};
  return References(analysis, value).take();
}

std::string argumentName(const Document& document, BoundSymbolId op, std::size_t operand) {
  const auto& bound = document.boundSymbol(op);
  const auto& symbol = document.symbol(bound.symbol);
  const auto& arguments = document.pattern(bound.pattern).arguments;
  for (std::size_t i = 0; i < arguments.size() && i < symbol.arguments.size(); ++i) {
    bool here = false;
    forEachOperand(arguments[i], [&](std::size_t hole) { here |= hole == operand; });
    if (here) return symbol.arguments[i].name;
  }
  return {};
}

}  // namespace retrograd
