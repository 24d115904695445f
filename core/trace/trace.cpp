#include "core/trace/trace.h"

#include <algorithm>
#include <set>

#include "core/base/enum_array.h"

namespace retrograd {
namespace {

/// Collects symbols; each meta, pattern and expression is looked at once.
class SymbolsInUse {
 public:
  explicit SymbolsInUse(const Document& document) : document_(document) {}

  void visit(ValueId value) {
    if (!value) return;
    const auto meta = document_.value(value).meta;
    if (!meta) return visit(document_.sizeExpression(value));
    if (!metas_.insert(meta).second) return;
    for (const auto& text : document_.meta(meta).symbols) visit(text);
  }
  void visit(BoundSymbolId op) {
    for (auto output : document_.outputs(op)) visit(output);
    if (const auto pattern = document_.boundSymbol(op).pattern; patterns_.insert(pattern).second)
      for (const auto& argument : document_.pattern(pattern).arguments) visit(argument);
  }
  std::vector<const SizeSymbol*> symbols() const {
    std::vector<const SizeSymbol*> found;
    for (const auto& symbol : document_.sizeSymbols())
      if (names_.contains(symbol.name)) found.push_back(&symbol);
    return found;
  }

 private:
  void visit(const Argument& argument) {
    if (argument.kind == Argument::Kind::integer || argument.kind == Argument::Kind::real)
      visit(std::string_view(argument.text));
    if (argument.kind == Argument::Kind::subgraph)
      for (auto op : document_.subgraph(SubgraphId(argument.integer)).ops) visit(op);
    for (const auto& item : argument.items) visit(item);
  }
  void visit(std::string_view text) {
    if (text.empty() || !texts_.emplace(text).second) return;
    if (const auto expression = SizeExpression::parse(text))
      names_.insert(expression->symbols().begin(), expression->symbols().end());
  }

  const Document& document_;
  std::set<MetaId> metas_;
  std::set<PatternId> patterns_;
  std::set<std::string, std::less<>> texts_, names_;
};

}  // namespace

std::string_view name(TraceKind kind) {
  static constexpr EnumArray<TraceKind, std::string_view, 4> names{"computation", "joint", "forward", "backward"};
  return names[kind];
}

std::vector<const SizeSymbol*> sizeSymbolsOf(const Document& document, const Trace& trace) {
  SymbolsInUse used(document);
  if (document.sizeSymbols().empty()) return {};
  for (auto input : trace.inputs) used.visit(input);
  for (auto op : trace.ops) used.visit(op);
  return used.symbols();
}

std::vector<const SizeSymbol*> sizeSymbolsOf(const Document& document, BoundSymbolId op) {
  SymbolsInUse used(document);
  for (auto operand : document.operands(op)) used.visit(operand);
  used.visit(op);
  return used.symbols();
}

std::string userOutputPosition(const Computation& computation, std::size_t i) {
  const auto isUser = [](const OutputSpec& output) {
    return output.kind == OutputKind::user || output.kind == OutputKind::loss;
  };
  if (!isUser(computation.outputs[i])) return {};
  return std::to_string(std::count_if(computation.outputs.begin(), computation.outputs.begin() + i, isUser));
}

}  // namespace retrograd
