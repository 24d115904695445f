#include "core/trace/printer.h"
namespace retrograd {
std::string printArgument(const Document& d, const Argument& a, std::span<const ValueId> operands) {
  switch (a.kind) {
    case Argument::Kind::operand: return d.displayName(operands[static_cast<std::size_t>(a.integer)]);
    case Argument::Kind::boolean: return a.integer ? "True" : "False";
    case Argument::Kind::integer: return std::to_string(a.integer);
    case Argument::Kind::real: return std::to_string(a.real);
    case Argument::Kind::string: return "'" + a.text + "'";
    case Argument::Kind::list: { std::string s = "["; for (auto& i : a.items) s += (s.size() > 1 ? ", " : "") + printArgument(d, i, operands); return s + "]"; }
    default: return "None";
  }
}
std::string printCall(const Document& d, BoundSymbolId op) {
  std::string s;
  for (auto v : d.outputs(op)) s += (s.empty() ? "" : ", ") + d.displayName(v);
  s += " = " + d.opName(op) + "(";
  bool first = true;
  for (auto& a : d.pattern(d.boundSymbol(op).pattern).arguments) { s += (first ? "" : ", ") + printArgument(d, a, d.operands(op)); first = false; }
  return s + ")";
}
std::string printComment(const Document&, BoundSymbolId) { return ""; }
}
