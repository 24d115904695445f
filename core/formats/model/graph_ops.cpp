#include "core/formats/model/graph_ops.h"

#include "core/trace/number.h"

namespace retrograd {

bool isNumberOperator(std::string_view target) { return findNumberFunction(target) != nullptr; }

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
