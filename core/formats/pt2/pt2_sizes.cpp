#include "core/formats/pt2/pt2_sizes.h"

#include <algorithm>
#include <unordered_set>

#include "core/formats/pt2/pt2_values.h"
#include "core/sizes/size_expression.h"

namespace retrograd::pt2 {
namespace {

/// torch.export's names of sizes that no input has: what nonzero() or item() gave.
bool isUnbacked(std::string_view symbol) {
  return symbol.size() > 1 && symbol[0] == 'u' &&
         std::all_of(symbol.begin() + 1, symbol.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Meets each size of the document and finds the symbols in it, and what they were when the model was exported.
class SymbolCollector {
 public:
  void visit(const TensorMeta& meta) {
    for (std::size_t i = 0; i < meta.symbols.size(); ++i) visit(meta.symbols[i], meta.sizes[i]);
    for (std::size_t i = 0; i < meta.strideSymbols.size(); ++i) visit(meta.strideSymbols[i], meta.strides[i]);
    visit(meta.offsetSymbol, meta.offset);
  }
  void visit(const std::string& text, std::int64_t hint) {
    if (text.empty() || !seen_.insert(text).second) return;
    const auto expression = SizeExpression::parse(text);
    if (!expression || std::any_of(expression->symbols().begin(), expression->symbols().end(), isUnbacked)) return;
    for (const auto& name : expression->symbols())
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
    hinted_.emplace_back(*expression, hint);
  }

  std::vector<SizeSymbol> symbols() const {
    SizeBindings known;
    // A symbol alone has its hint; that of "2*s0" follows, once all others in it are known.
    for (bool found = true; found;) {
      found = false;
      for (const auto& [expression, hint] : hinted_) {
        const std::string* open = nullptr;
        std::size_t openCount = 0;
        for (const auto& name : expression.symbols())
          if (!known.contains(name)) open = &name, ++openCount;
        if (openCount != 1) continue;
        if (const auto value = expression.solve(*open, hint, known)) found = known.emplace(*open, *value).second;
      }
    }
    std::vector<SizeSymbol> symbols;
    for (const auto& name : names_)
      if (const auto it = known.find(name); it != known.end()) symbols.push_back({name, it->second, 0, {}});
    return symbols;
  }

 private:
  std::unordered_set<std::string> seen_;
  std::vector<std::string> names_;
  std::vector<std::pair<SizeExpression, std::int64_t>> hinted_;
};

std::optional<std::int64_t> bound(const Json& range, const char* key) {
  const Json* value = range.find(key);
  if (!value || value->isNull()) return std::nullopt;
  constexpr std::int64_t unbounded = std::int64_t{1} << 62;
  const auto n = value->integer();
  return n > unbounded || n < -unbounded ? std::nullopt : std::optional(n);
}

}  // namespace

std::vector<SizeSymbol> readSizeSymbols(const Json& program, const Document& document) {
  SymbolCollector collector;
  for (std::size_t i = 0; i < document.metaCount(); ++i)
    collector.visit(document.meta(MetaId(static_cast<std::int64_t>(i))));
  if (const Json* numbers = program.at("graph_module").at("graph").find("sym_int_values");
      numbers && numbers->isObject())
    for (const auto& [name, number] : numbers->members()) {
      const auto n = readSymbolicInt(number);
      collector.visit(n.expression, n.value);
    }
  auto symbols = collector.symbols();
  const Json* ranges = program.find("range_constraints");
  if (!ranges || !ranges->isObject()) return symbols;
  for (auto& symbol : symbols) {
    const Json* range = ranges->find(symbol.name);
    if (!range || !range->isObject()) continue;
    symbol.least = std::max<std::int64_t>(bound(*range, "min_val").value_or(0), 0);
    symbol.greatest = bound(*range, "max_val");
  }
  return symbols;
}

std::vector<std::string> readGuards(const Json& program) {
  std::vector<std::string> guards;
  const Json* list = program.find("guards_code");
  if (!list || !list->isArray()) return guards;
  for (const auto& guard : list->items())
    if (guard.isString()) guards.emplace_back(guard.text());
  return guards;
}

}  // namespace retrograd::pt2
