#include "core/derivation/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/tensor_meta.h"

namespace retrograd {
namespace {

/// One size that inputs decide: a dimension of a tensor, or a number.
struct Place {
  std::string input;
  int dimension = -1;  ///< -1: the input is a number
  std::string text;
  SizeExpression expression;

  std::string what() const { return dimension < 0 ? "the number" : fmt::format("dimension {}", dimension); }
  std::string inInput() const {
    return dimension < 0 ? fmt::format("the number {}", input)
                         : fmt::format("dimension {} of input {}", dimension, input);
  }
};

std::vector<Place> placesOf(const ModelFile& file) {
  std::vector<Place> places;
  const auto& document = *file.document;
  const auto add = [&](const std::string& input, int dimension, std::string_view text) {
    if (auto expression = SizeExpression::parse(text); !text.empty() && expression)
      places.push_back({input, dimension, std::string(text), *std::move(expression)});
  };
  for (const auto& input : file.computation.inputs) {
    if (input.kind != InputKind::user || !input.value) continue;
    const auto meta = document.value(input.value).meta;
    if (!meta) {
      add(input.name, -1, document.sizeExpression(input.value));
      continue;
    }
    const auto& symbols = document.meta(meta).symbols;
    for (std::size_t i = 0; i < symbols.size(); ++i) add(input.name, static_cast<int>(i), symbols[i]);
  }
  return places;
}

std::optional<std::int64_t> givenAt(const GivenSizes& given, const Place& place) {
  if (place.dimension < 0) {
    const auto it = given.numbers.find(place.input);
    return it == given.numbers.end() ? std::nullopt : std::optional(it->second);
  }
  const auto it = given.shapes.find(place.input);
  if (it == given.shapes.end() || std::cmp_greater_equal(place.dimension, it->second.size())) return std::nullopt;
  return it->second[place.dimension];
}

std::string rangeText(const SizeSymbol& symbol) {
  return symbol.greatest ? fmt::format("in [{}, {}]", symbol.least, *symbol.greatest)
                         : fmt::format("at least {}", symbol.least);
}

class SizeBinder {
 public:
  SizeBinder(const ModelFile& file, const GivenSizes& given)
      : document_(*file.document), places_(placesOf(file)), given_(given) {}

  SizeBindings run(const std::vector<SizeCondition>& conditions) {
    while (bindOne()) {
    }
    for (const auto& symbol : document_.sizeSymbols()) sizes_.emplace(symbol.name, symbol.hint);
    for (const auto& place : places_) verify(place);
    for (const auto& condition : conditions) verify(condition);
    return std::move(sizes_);
  }

 private:
  [[noreturn]] static void refuse(const Place& place, std::string message) {
    badUse(std::move(message), "input " + place.input);
  }

  const SizeSymbol* find(std::string_view name) const {
    const auto& symbols = document_.sizeSymbols();
    const auto it = std::find_if(symbols.begin(), symbols.end(), [&](const SizeSymbol& s) { return s.name == name; });
    return it == symbols.end() ? nullptr : &*it;
  }

  /// Finds a given size with one symbol still open, and closes it.
  bool bindOne() {
    for (const auto& place : places_) {
      const auto size = givenAt(given_, place);
      const auto& names = place.expression.symbols();
      if (!size || std::count_if(names.begin(), names.end(), [&](const auto& n) { return !sizes_.contains(n); }) != 1)
        continue;
      const auto name = *std::find_if(names.begin(), names.end(), [&](const auto& n) { return !sizes_.contains(n); });
      const auto* symbol = find(name);
      if (!symbol) continue;
      const auto value = solve(place, *symbol, *size);
      if (!value)
        refuse(place, fmt::format("{} is {}, which no {} gives as {} ({} is {})", place.what(), *size, name, place.text,
                                  name, rangeText(*symbol)));
      if (*value < symbol->least || (symbol->greatest && *value > *symbol->greatest))
        refuse(place, fmt::format("{} is {}, but its symbol {} is {}{}", place.what(), *size, name, rangeText(*symbol),
                                  place.text == name
                                      ? ""
                                      : fmt::format(" ({} = {} asks for {} = {})", place.text, *size, name, *value)));
      sizes_.emplace(name, *value);
      boundBy_.emplace(name, &place);
      return true;
    }
    return false;
  }

  /// The hint where it gives the size: a division that rounds has several solutions, and a pipeline's stage is sent
  /// what the whole model's sizes give.
  std::optional<std::int64_t> solve(const Place& place, const SizeSymbol& symbol, std::int64_t size) const {
    auto sizes = sizes_;
    sizes[symbol.name] = symbol.hint;
    return place.expression.evaluate(sizes) == size ? symbol.hint : place.expression.solve(symbol.name, size, sizes_);
  }

  void verify(const Place& place) const {
    const auto size = givenAt(given_, place);
    const auto expected = place.expression.evaluate(sizes_);
    if (!size || !expected || *size == *expected) return;
    std::string reasons;
    for (const auto& name : place.expression.symbols()) {
      const auto* symbol = find(name);
      const auto by = boundBy_.find(name);
      reasons += fmt::format("{}{} is {}", reasons.empty() ? "" : ", ", name, sizes_.find(name)->second);
      if (by != boundBy_.end()) reasons += fmt::format(" by {}", by->second->inInput());
      if (symbol) reasons += fmt::format(" ({})", rangeText(*symbol));
    }
    refuse(place, fmt::format("{} is {}, but {} is {}: {}", place.what(), *size, place.text, *expected, reasons));
  }

  void verify(const SizeCondition& condition) const {
    if (condition.holds.evaluate(sizes_).value_or(1) != 0) return;
    SizeBindings used;
    const Place* by = nullptr;
    for (const auto& name : condition.holds.symbols()) {
      used.emplace(name, sizes_.find(name)->second);
      if (const auto it = boundBy_.find(name); it != boundBy_.end()) by = it->second;
    }
    const auto message = fmt::format("the graph was exported for sizes with {}, which does not hold for {}",
                                     condition.text, sizesText(used));
    if (by) refuse(*by, fmt::format("{} is {}: {}", by->what(), givenAt(given_, *by).value_or(0), message));
    badUse(message);
  }

  const Document& document_;
  const std::vector<Place> places_;
  const GivenSizes& given_;
  SizeBindings sizes_;
  std::map<std::string, const Place*, std::less<>> boundBy_;
};

/// Python's way of naming sizes in a guard, L['x'].size()[0] or L['n'], replaced by the expressions the inputs have for
/// them.
class GuardText {
 public:
  explicit GuardText(const ModelFile& file) : file_(file) {}

  std::optional<std::string> translate(std::string_view guard) const {
    std::string text;
    while (!guard.empty()) {
      const auto begin = guard.find("L['");
      text += guard.substr(0, begin);
      if (begin == std::string_view::npos) break;
      guard.remove_prefix(begin + 1);
      const auto size = sizeNamed(guard);
      if (!size) return std::nullopt;
      text += *size;
    }
    return text;
  }

 private:
  static bool take(std::string_view& text, std::string_view part) {
    if (!text.starts_with(part)) return false;
    text.remove_prefix(part.size());
    return true;
  }
  static std::string_view takeUntil(std::string_view& text, char end) {
    const auto at = std::min(text.find(end), text.size());
    const auto part = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return part;
  }

  /// `text` begins behind the L; what was read is taken off.
  std::optional<std::string> sizeNamed(std::string_view& text) const {
    std::string name;  // nested inputs: L['batch']['ids'] is the argument batch_ids, L['xs'][0] is xs_0
    while (take(text, "[")) {
      const bool quoted = take(text, "'");
      if (!name.empty()) name += '_';
      name += takeUntil(text, quoted ? '\'' : ']');
      if (quoted && !take(text, "]")) return std::nullopt;
    }
    const auto& inputs = file_.computation.inputs;
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const InputSpec& i) { return i.kind == InputKind::user && i.name == name; });
    if (input == inputs.end() || !input->value) return std::nullopt;
    const auto& document = *file_.document;
    if (!document.isTensor(input->value)) {
      const auto expression = document.sizeExpression(input->value);
      return expression.empty() ? std::nullopt : std::optional(wrapped(expression));
    }
    const auto& meta = document.meta(input->value);
    const bool isSize = take(text, ".size()[");
    if (!isSize && !take(text, ".stride()[")) return std::nullopt;
    const auto index = evaluateSize(takeUntil(text, ']'), {});
    const auto& numbers = isSize ? meta.sizes : meta.strides;
    const auto& symbols = isSize ? meta.symbols : meta.strideSymbols;
    if (!index || *index < 0 || std::cmp_greater_equal(*index, numbers.size())) return std::nullopt;
    const std::size_t i = *index;
    return i < symbols.size() && !symbols[i].empty() ? wrapped(symbols[i]) : std::to_string(numbers[i]);
  }

  static std::string wrapped(std::string_view expression) {
    const bool isName = expression.find_first_of(" +-*/%(") == std::string_view::npos;
    return isName ? std::string(expression) : fmt::format("({})", expression);
  }

  const ModelFile& file_;
};

/// Numbers at which a symbol-bearing list is for these sizes.
void evaluate(const std::vector<std::string>& expressions, const SizeBindings& sizes,
              std::vector<std::int64_t>& numbers) {
  for (std::size_t i = 0; i < expressions.size() && i < numbers.size(); ++i) {
    if (expressions[i].empty()) continue;
    if (const auto number = evaluateSize(expressions[i], sizes); number && *number >= 0) numbers[i] = *number;
  }
}

}  // namespace

std::vector<SizeCondition> sizeConditions(const ModelFile& file) {
  std::vector<SizeCondition> conditions;
  const auto& document = *file.document;
  const auto hints = document.sizeHints();
  const auto add = [&](std::string text) {
    auto expression = SizeExpression::parse(text);
    if (!expression || expression->symbols().empty() || expression->evaluate(hints).value_or(0) == 0) return;
    conditions.push_back({std::move(text), *std::move(expression)});
  };
  const GuardText guards(file);
  for (const auto& guard : file.guards)
    if (auto text = guards.translate(guard)) add(*std::move(text));
  for (auto op : file.computation.trace.ops) {
    if (document.symbol(op).name != "aten._assert_scalar.default") continue;
    const auto operands = document.operands(op);
    if (!operands.empty()) add(std::string(document.sizeExpression(operands[0])));
  }
  return conditions;
}

std::vector<SizeBranch> branchConditions(const Document& document) {
  std::vector<SizeBranch> branches;
  const auto cond = document.findSymbol("higher_order.cond");
  const auto hints = document.sizeHints();
  for (std::size_t i = 0; cond && i < document.boundSymbolCount(); ++i) {
    const BoundSymbolId op(static_cast<std::int64_t>(i));
    if (document.boundSymbol(op).symbol != cond || document.operands(op).empty()) continue;
    std::string text(document.sizeExpression(document.operands(op)[0]));
    auto holds = SizeExpression::parse(text);
    const auto now = holds ? holds->evaluate(hints) : std::nullopt;
    if (!now) continue;
    if (*now == 0) text = fmt::format("not ({})", text);
    branches.push_back({op, {text, *SizeExpression::parse(text)}});
  }
  return branches;
}

SizeBindings bindSizes(const ModelFile& file, const GivenSizes& given) {
  return SizeBinder(file, given).run(sizeConditions(file));
}

TensorMeta metaAt(const TensorMeta& meta, const SizeBindings& sizes) {
  TensorMeta result = meta;
  evaluate(meta.symbols, sizes, result.sizes);
  evaluate(meta.strideSymbols, sizes, result.strides);
  // A printed trace has no expressions of strides; what lies contiguously does so at all sizes.
  if (meta.strideSymbols.empty() && meta.strides == contiguousStrides(meta.sizes))
    result.strides = contiguousStrides(result.sizes);
  if (const auto offset = evaluateSize(meta.offsetSymbol, sizes); offset && *offset >= 0) result.offset = *offset;
  checkExtent(result);
  return result;
}

TensorMeta inputMetaAt(const TensorMeta& declared, const TensorMeta& now, const SizeBindings& hints,
                       const SizeBindings& sizes) {
  auto meta = metaAt(declared, sizes);
  const auto before = metaAt(declared, hints);
  if (now.strides == before.strides && now.offset == before.offset) return meta;
  if (now.strides != contiguousStrides(now.sizes) || now.offset != 0)
    throw Error(ErrorCode::unsupportedOp, "it is laid out neither as in the file nor contiguously");
  meta.strides = contiguousStrides(meta.sizes);
  meta.strideSymbols.clear();
  meta.offset = 0;
  meta.offsetSymbol.clear();
  return meta;
}

namespace {

/// Numbers of a call that are expressions over the sizes, as they are now; whether there are any.
bool renewNumbers(Argument& argument, const SizeBindings& sizes) {
  bool any = false;
  if (argument.kind == Argument::Kind::integer && !argument.text.empty())
    if (const auto now = evaluateSize(argument.text, sizes)) {
      argument.integer = *now;
      any = true;
    }
  for (auto& item : argument.items) any |= renewNumbers(item, sizes);
  return any;
}

void renewCalls(Document& document, const SizeBindings& sizes) {
  std::map<PatternId, PatternId> renewed;
  for (const auto op : document.boundSymbolIds()) {
    const auto before = document.boundSymbol(op).pattern;
    const auto [it, isNew] = renewed.try_emplace(before, before);
    if (isNew) {
      CallPattern pattern = document.pattern(before);
      bool any = false;
      for (auto& argument : pattern.arguments) any |= renewNumbers(argument, sizes);
      if (any) it->second = document.internPattern(pattern);
    }
    document.boundSymbol(op).pattern = it->second;
  }
}

}  // namespace

void setSizes(Document& document, const SizeBindings& sizes) {
  auto symbols = document.sizeSymbols();
  for (auto& symbol : symbols)
    if (const auto it = sizes.find(symbol.name); it != sizes.end()) symbol.hint = it->second;
  document.setSizeSymbols(std::move(symbols));
  renewCalls(document, document.sizeHints());
  std::map<MetaId, MetaId> changed;
  for (const auto id : document.valueIds()) {
    const auto before = document.value(id).meta;
    if (!before || !document.meta(before).isSymbolic()) continue;
    const auto [it, isNew] = changed.try_emplace(before);
    if (isNew) it->second = document.internMeta(metaAt(document.meta(before), sizes));
    auto& value = document.value(id);
    value.meta = it->second;
    if (value.storage && document.storage(value.storage).first == id)
      document.storage(value.storage).bytes = document.meta(value.meta).storageBytes();
  }
}

std::string sizesText(const SizeBindings& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, size);
  return text;
}

std::string symbolicShape(const TensorMeta& meta) {
  std::string text;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    const bool symbolic = i < meta.symbols.size() && !meta.symbols[i].empty();
    text += fmt::format("{}{}", i ? ", " : "", symbolic ? meta.symbols[i] : std::to_string(meta.sizes[i]));
  }
  return "[" + text + "]";
}

}  // namespace retrograd
