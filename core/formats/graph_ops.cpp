#include "core/formats/graph_ops.h"

#include <algorithm>
#include <array>

namespace retrograd {

bool isNumberOperator(std::string_view target) {
  static constexpr std::array<std::string_view, 26> operators{
      "add", "sub", "mul", "truediv", "floordiv", "mod", "pow",  "neg",    "pos",    "abs",    "eq",    "ne",    "lt",
      "le",  "gt",  "ge",  "and_",    "or_",      "xor", "not_", "invert", "lshift", "rshift", "index", "truth", "iadd"};
  static constexpr std::array<std::string_view, 19> functions{"ceil", "floor", "trunc", "sqrt", "cos",  "cosh", "sin",
                                                              "sinh", "tan",   "tanh",  "asin", "acos", "atan", "exp",
                                                              "log",  "log2",  "pow",   "fabs", "isnan"};
  static constexpr std::array<std::string_view, 9> symbolic{"float", "int", "max", "min", "ite", "not", "sqrt", "sum", "log2"};
  const auto among = [&](const auto& table, std::string_view prefix) {
    return target.starts_with(prefix) && std::find(table.begin(), table.end(), target.substr(prefix.size())) != table.end();
  };
  return among(operators, "_operator.") || among(functions, "math.") || among(symbolic, "torch.sym_") || among(symbolic, "torch._sym_") ||
         among(functions, "torch._sym_") || among(functions, "torch.sym_") || target == "builtins.round" || target == "builtins.abs";
}

Symbol resolveSymbol(std::string_view target, const SymbolLookup& lookup) {
  constexpr std::string_view opsPrefix = "torch.ops.";
  const bool isOp = target.starts_with(opsPrefix);
  Symbol symbol;
  symbol.name = isOp ? target.substr(opsPrefix.size()) : target;
  if (symbol.name.starts_with("higher_order.")) {
    symbol.known = symbol.isHigherOrder = true;
    return symbol;
  }
  if (isOp)
    if (auto known = lookup(symbol.name)) return *std::move(known);
  symbol.known = isNumberOperator(isOp && symbol.name.starts_with("builtins.") ? symbol.name : std::string(target));
  return symbol;
}

std::string unknownOpMessage(const std::string& name) {
  if (name.starts_with("torch._functorch.predispatch."))
    return "unknown op " + name +
           ": a Python call that vmap leaves in a training graph; export the decomposed graph instead: "
           "torch.export.save(torch.export.export(model, args).run_decompositions(), \"model.pt2\")";
  if (name.starts_with("aten.") || name.starts_with("prims."))
    return "unknown op " + name +
           ": this LibTorch does not have it, or a file may not call it (ops that reach files, processes or the network)";
  return "unknown op " + name + ": a custom op, registered in Python or by an extension; LibTorch alone cannot run it. Give the library that has it with --library";
}

}  // namespace retrograd
