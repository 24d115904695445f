#include "core/formats/model/graph_ops.h"

#include <algorithm>
#include <array>

#include "core/base/user_choice.h"
#include "core/sizes/number.h"

namespace retrograd {

bool isNumberOperator(std::string_view target) { return findNumberFunction(target) != nullptr; }

namespace {

constexpr std::string_view opsPrefix = "torch.ops.";

/// Those whose bodies are inlined; any other ("auto_functionalized", "triton_kernel_wrapper_functional") is opaque.
bool isHigherOrderKnown(std::string_view name) {
  static constexpr std::array<std::string_view, 9> known{
      "cond",          "scan",        "map", "while_loop", "wrap", "invoke_subgraph", "tag_activation_checkpoint",
      "hints_wrapper", "with_effects"};
  name.remove_prefix(std::string_view("higher_order.").size());
  return std::any_of(known.begin(), known.end(), [&](std::string_view one) { return name.starts_with(one); });
}

}  // namespace

Symbol resolveSymbol(std::string_view target, const SymbolLookup& lookup) {
  const bool isOp = target.starts_with(opsPrefix);
  Symbol symbol;
  symbol.name = isOp ? target.substr(opsPrefix.size()) : target;
  if (symbol.name.starts_with("higher_order.")) {
    symbol.isHigherOrder = true;
    symbol.known = isHigherOrderKnown(symbol.name);
    return symbol;
  }
  if (isOp)
    if (auto known = lookup(symbol.name)) return *std::move(known);
  symbol.known = isNumberOperator(isOp && symbol.name.starts_with("builtins.") ? symbol.name : std::string(target));
  return symbol;
}

bool lacksOverload(std::string_view target) {
  return target.starts_with(opsPrefix) && std::count(target.begin(), target.end(), '.') == 3;
}

Symbol resolveCall(std::string_view target, const SymbolLookup& lookup) {
  auto symbol = resolveSymbol(target, lookup);
  if (symbol.known || !lacksOverload(target)) return symbol;
  auto usual = resolveSymbol(std::string(target) + ".default", lookup);
  return usual.known ? usual : symbol;
}

namespace {

std::string whyUnknown(const std::string& name) {
  if (name.starts_with("torch._functorch.predispatch."))
    return "unknown op " + name +
           ": a Python call that vmap leaves in a training graph; export the decomposed graph instead: "
           "torch.export.save(torch.export.export(model, args).run_decompositions(), \"model.pt2\")";
  if (name.starts_with("aten.") || name.starts_with("prims."))
    return "unknown op " + name +
           ": this LibTorch does not have it, or a file may not call it (ops that reach files, processes or the "
           "network)";
  return "unknown op " + name +
         ": a custom op, registered in Python or by an extension, or a kernel; give the library that has it with " +
         nameOf(UserChoice::library);
}

}  // namespace

std::string unknownOpMessage(const std::string& name) {
  return whyUnknown(name) +
         ". It is opaque here: it is shown and never run, and what depends on its result is left out unless that is "
         "filled in (" +
         nameOf(UserChoice::fill) + ")";
}

}  // namespace retrograd
