#include "core/trace/print/call_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/trace/python_text.h"
#include "core/trace/symbol.h"

namespace retrograd {
namespace {

std::string inBrackets(const std::string& items) { return fmt::format("[{}]", items); }
std::string tuple(const std::string& items, bool isTuple) { return isTuple ? fmt::format("({})", items) : items; }

}  // namespace

std::string CallText::targets(BoundSymbolId op) const {
  const auto outputs = document_.outputs(op);
  const auto& returns = document_.pattern(document_.boundSymbol(op).pattern).returns;
  const auto show = [&](ValueId v) { return v ? made(v) : std::string("_"); };
  if (returns.empty()) {
    const auto names = joined(outputs, show);
    return tuple(names, outputs.size() > 1);
  }
  std::size_t next = 0;
  const auto names = joined(returns, [&](std::int32_t count) {
    const auto n = std::min<std::size_t>(count < 0 ? 1 : count, outputs.size() - next);
    const auto group = outputs.subspan(next, n);
    next += n;
    return count < 0 ? joined(group, show) : inBrackets(joined(group, show));
  });
  return tuple(names, returns.size() > 1);
}

std::string CallText::argument(const Argument& argument, std::span<const ValueId> operands) const {
  const std::size_t index = argument.integer;
  switch (argument.kind) {
    case Argument::Kind::operand: return index < operands.size() ? value(operands[index]) : "?";
    case Argument::Kind::list:
      return inBrackets(joined(argument.items, [&](const Argument& a) { return this->argument(a, operands); }));
    default: return literal(argument);
  }
}

std::string CallText::literal(const Argument& argument) const {
  using Kind = Argument::Kind;
  static constexpr std::array<const char*, 4> memoryFormats{"contiguous_format", "preserve_format", "channels_last",
                                                            "channels_last_3d"};
  static constexpr std::array<const char*, 7> layouts{"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                                      "sparse_bsr", "sparse_bsc", "_mkldnn"};
  const std::size_t index = argument.integer;
  switch (argument.kind) {
    case Kind::none:
    case Kind::missing: return "None";
    case Kind::boolean: return argument.integer ? "True" : "False";
    case Kind::integer: return argument.text.empty() ? std::to_string(argument.integer) : argument.text;
    case Kind::real: return argument.text.empty() ? pythonReal(argument.real) : argument.text;
    case Kind::complex:
      return fmt::format("complex({}, {})", pythonReal(argument.real), pythonReal(argument.imaginary));
    case Kind::string: return pythonString(argument.text);
    case Kind::device: return fmt::format("torch.device({})", pythonString(argument.text));
    case Kind::dtype: return fmt::format("torch.{}", torchName(static_cast<DType>(argument.integer)));
    case Kind::layout: return fmt::format("torch.{}", index < layouts.size() ? layouts[index] : "strided");
    case Kind::memoryFormat:
      return fmt::format("torch.{}", index < memoryFormats.size() ? memoryFormats[index] : "preserve_format");
    case Kind::subgraph: return document_.subgraph(SubgraphId(argument.integer)).name;
    case Kind::op: return "torch.ops." + argument.text;
    case Kind::operand:
    case Kind::list: break;
  }
  return "?";
}

std::string CallText::call(BoundSymbolId op) const {
  const auto& bound = document_.boundSymbol(op);
  const auto& symbol = document_.symbol(bound.symbol);
  const auto call = callArguments(symbol, document_.pattern(bound.pattern));
  const auto operands = document_.operands(op);
  std::string arguments = joined(call.positional, [&](const Argument* a) { return whole(*a, operands); });
  for (const auto& [key, argument] : call.keyword)
    arguments += fmt::format("{}{}={}", arguments.empty() ? "" : ", ", name(key), whole(*argument, operands));
  const auto left = targets(op);
  return fmt::format("{}{}{}({})", left, left.empty() ? "" : " = ", name(symbol.qualifiedName()), arguments);
}

}  // namespace retrograd
