#include "core/trace/document.h"

#include <functional>

#include "core/base/enum_array.h"

namespace retrograd {
namespace {

void mix(std::size_t& seed, std::size_t h) { seed ^= h + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2); }

void mixArgument(std::size_t& seed, const Argument& a) {
  mix(seed, static_cast<std::size_t>(a.kind));
  mix(seed, a.integer);
  if (a.real != 0) mix(seed, std::hash<double>()(a.real));
  if (a.imaginary != 0) mix(seed, std::hash<double>()(a.imaginary));
  if (!a.text.empty()) mix(seed, std::hash<std::string>()(a.text));
  for (const auto& item : a.items) mixArgument(seed, item);
}

std::size_t hashOf(const TensorMeta& m) {
  std::size_t seed = static_cast<std::size_t>(m.dtype) * 31 + static_cast<std::size_t>(m.device.type);
  for (auto s : m.sizes) mix(seed, s);
  for (auto s : m.strides) mix(seed, s);
  mix(seed, m.offset);
  for (const auto* symbols : {&m.symbols, &m.strideSymbols})
    for (const auto& s : *symbols) mix(seed, std::hash<std::string>()(s));
  return seed;
}

std::size_t hashOf(const SourceStack& stack) {
  std::size_t seed = stack.size();
  for (const auto& f : stack) {
    mix(seed, std::hash<std::string>()(f.file));
    mix(seed, f.line);
    mix(seed, std::hash<std::string>()(f.function));
    mix(seed, std::hash<std::string>()(f.code));
  }
  return seed;
}

/// Finds `item` among the table entries of one hash bucket, or appends it.
template <class IdType, class Item>
IdType internIn(IdVector<IdType, Item>& table, std::unordered_map<std::size_t, std::vector<IdType>>& index,
                const Item& item, std::size_t hash) {
  auto& bucket = index[hash];
  for (auto id : bucket)
    if (table[id] == item) return id;
  const auto id = table.push_back(item);
  bucket.push_back(id);
  return id;
}

}  // namespace

std::size_t hashOf(const CallPattern& pattern) {
  std::size_t seed = pattern.operandCount;
  for (const auto& a : pattern.arguments) mixArgument(seed, a);
  for (const auto& n : pattern.names) mix(seed, std::hash<std::string>()(n));
  for (auto r : pattern.returns) mix(seed, r);
  return seed;
}

std::string_view name(ValueKind kind) {
  static constexpr EnumArray<ValueKind, std::string_view, 7> names{"input",      "parameter", "buffer",  "constant",
                                                                   "activation", "cotangent", "gradient"};
  return names[kind];
}

std::string_view name(Role role) {
  static constexpr EnumArray<Role, std::string_view, 7> names{"none",      "forward", "gradient", "accumulation",
                                                              "recompute", "zero",    "cotangent"};
  return names[role];
}

std::string Symbol::qualifiedName() const {
  return name.starts_with("_operator.") || name.starts_with("math.") || name.starts_with("torch.")
             ? name
             : "torch.ops." + name;
}

int Symbol::argumentIndex(std::string_view argumentName) const {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argumentName) return static_cast<int>(i);
  return -1;
}

MetaId Document::internMeta(const TensorMeta& meta) { return internIn(metas_, metaIndex_, meta, hashOf(meta)); }
PatternId Document::internPattern(const CallPattern& pattern) {
  return internIn(patterns_, patternIndex_, pattern, retrograd::hashOf(pattern));
}
SourceStackId Document::internSource(const SourceStack& stack) {
  return internIn(sources_, sourceIndex_, stack, hashOf(stack));
}

SymbolId Document::internSymbol(const Symbol& symbol) {
  auto [it, isNew] = symbolIndex_.try_emplace(symbol.name, symbols_.nextId());
  if (isNew) symbols_.push_back(symbol);
  return it->second;
}

SymbolId Document::findSymbol(std::string_view name) const {
  auto it = symbolIndex_.find(name);
  return it == symbolIndex_.end() ? SymbolId() : it->second;
}

const SourceStack& Document::source(SourceStackId id) const {
  static const SourceStack none;
  return id ? sources_[id] : none;
}

StorageId Document::addStorage(std::int64_t bytes, ValueId first, bool external) {
  return storages_.push_back({bytes, first, external});
}

ValueId Document::addValue(const Value& value) { return values_.push_back(value); }

BoundSymbolId Document::addBoundSymbol(const BoundSymbol& bound, std::span<const ValueId> operands,
                                       std::span<const ValueId> outputs) {
  const auto id = boundSymbols_.push_back(bound);
  auto& b = boundSymbols_[id];
  b.valuesBegin = static_cast<std::uint32_t>(arena_.size());
  b.operandCount = static_cast<std::uint16_t>(operands.size());
  b.outputCount = static_cast<std::uint16_t>(outputs.size());
  arena_.insert(arena_.end(), operands.begin(), operands.end());
  arena_.insert(arena_.end(), outputs.begin(), outputs.end());
  return id;
}

std::span<const ValueId> Document::operands(BoundSymbolId id) const {
  const auto& b = boundSymbol(id);
  return {arena_.data() + b.valuesBegin, b.operandCount};
}

std::span<const ValueId> Document::outputs(BoundSymbolId id) const {
  const auto& b = boundSymbol(id);
  return {arena_.data() + b.valuesBegin + b.operandCount, b.outputCount};
}

std::span<ValueId> Document::outputs(BoundSymbolId id) {
  const auto& b = boundSymbol(id);
  return {arena_.data() + b.valuesBegin + b.operandCount, b.outputCount};
}

std::span<const ValueId> Document::terms(const Origin& origin) const {
  return {arena_.data() + origin.termsBegin, origin.termCount};
}

void Document::setTerms(Origin& origin, std::span<const ValueId> terms) {
  origin.termsBegin = static_cast<std::uint32_t>(arena_.size());
  origin.termCount = static_cast<std::uint32_t>(terms.size());
  arena_.insert(arena_.end(), terms.begin(), terms.end());
}

SubgraphId Document::addSubgraph(Subgraph subgraph) { return subgraphs_.push_back(std::move(subgraph)); }

SizeBindings Document::sizeHints() const {
  SizeBindings hints;
  for (const auto& symbol : sizeSymbols_) hints.emplace(symbol.name, symbol.hint);
  return hints;
}

std::string_view Document::sizeExpression(ValueId number) const {
  const auto it = sizeExpressions_.find(number.index);
  return it == sizeExpressions_.end() ? std::string_view() : it->second;
}

std::string Document::displayName(ValueId id) const {
  if (!id) return "None";
  const auto& v = value(id);
  if (v.name) return std::string(text(v.name));
  std::string name = "t" + std::to_string(id.index);
  while (strings_.contains(name)) name += '_';
  return name;
}

std::size_t Document::tableBytes() const {
  std::size_t bytes = storages_.capacity() * sizeof(Storage) + values_.capacity() * sizeof(Value) +
                      boundSymbols_.capacity() * sizeof(BoundSymbol) + arena_.capacity() * sizeof(ValueId);
  bytes +=
      strings_.bytes() + metas_.size() * 128 + patterns_.size() * 256 + symbols_.size() * 1024 + sources_.size() * 256;
  return bytes;
}

}  // namespace retrograd
