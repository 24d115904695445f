// The tables of a Document as records.
#include <map>

#include "core/formats/session_file/session_codec.h"

namespace retrograd::session {
namespace {

template <class IdType>
IdType idOf(std::size_t i) {
  return IdType(static_cast<std::int64_t>(i));
}

/// A list with one entry for each of `count` ids.
template <class IdType, class Entry>
Out listOf(std::size_t count, Entry&& entry) {
  Out list = Out::array();
  for (std::size_t i = 0; i < count; ++i) list.push_back(entry(idOf<IdType>(i)));
  return list;
}

Out argumentsOut(const std::vector<Argument>& arguments) {
  Out list = Out::array();
  for (const auto& argument : arguments) list.push_back(argumentOut(argument));
  return list;
}

Out symbolOut(const Symbol& symbol) {
  return {{"name", textOut(symbol.name)}, {"known", symbol.known}, {"schema", textOut(symbol.schema)}};
}

Out patternOut(const CallPattern& pattern) {
  Out out{
      {"arguments", argumentsOut(pattern.arguments)}, {"operands", pattern.operandCount}, {"returns", pattern.returns}};
  if (!pattern.names.empty()) out["names"] = textsOut(pattern.names);
  return out;
}

Out sourceOut(const SourceStack& stack) {
  Out list = Out::array();
  for (const auto& frame : stack)
    list.push_back(Out::array({textOut(frame.file), frame.line, textOut(frame.function), textOut(frame.code)}));
  return list;
}

Out subgraphOut(const Subgraph& body) {
  return {{"name", textOut(body.name)},
          {"inputs", idsOut(body.inputs)},
          {"outputs", argumentsOut(body.outputs)},
          {"values", idsOut(body.outputValues)},
          {"ops", idsOut(body.ops)}};
}

std::string storagesText(const Document& document) {
  RowText text;
  text.open();
  for (std::size_t i = 0; i < document.storageCount(); ++i) {
    const auto& storage = document.storage(idOf<StorageId>(i));
    text.open().number(storage.bytes).id(storage.first).number(storage.external).close();
  }
  return text.close().take();
}

std::string valuesText(const Document& document) {
  RowText text;
  text.open();
  for (const auto id : document.valueIds()) {
    const auto& value = document.value(id);
    text.open().id(value.name).id(value.meta).id(value.storage).id(value.producer).number(static_cast<int>(value.kind));
    text.number(value.requiresGrad).number(value.version).close();
  }
  return text.close().take();
}

/// The terms of accumulations, each list once: the k-th addition into a gradient refers to the first k of one list.
class TermLists {
 public:
  explicit TermLists(const Document& document) : document_(document) {
    for (const auto op : document.boundSymbolIds()) {
      const auto& origin = document.boundSymbol(op).origin;
      if (origin.termCount == 0) continue;
      auto [it, isNew] = index_.try_emplace(origin.termsBegin, lists_.size());
      if (isNew) lists_.push_back(&origin);
      else if (lists_[it->second]->termCount < origin.termCount) lists_[it->second] = &origin;
    }
  }
  std::int64_t listOf(const Origin& origin) const {
    return origin.termCount == 0 ? -1 : static_cast<std::int64_t>(index_.at(origin.termsBegin));
  }
  std::string text() const {
    RowText text;
    text.open();
    for (const auto* origin : lists_) text.ids(document_.terms(*origin));
    return text.close().take();
  }

 private:
  const Document& document_;
  std::map<std::uint32_t, std::size_t> index_;  // by first place in the arena
  std::vector<const Origin*> lists_;
};

std::string opsText(const Document& document, const TermLists& terms) {
  RowText text;
  text.open();
  for (const auto id : document.boundSymbolIds()) {
    const auto& op = document.boundSymbol(id);
    text.open().id(op.symbol).id(op.pattern).ids(document.operands(id)).ids(document.outputs(id));
    text.id(op.parent)
        .id(op.source)
        .id(op.module)
        .id(op.name)
        .number(op.effects)
        .number(op.gradMode)
        .number(op.recomputed)
        .id(op.replays);
    const auto& origin = op.origin;
    text.open();
    if (origin.role != Role::none) {
      text.number(static_cast<int>(origin.role))
          .id(origin.op)
          .number(origin.operand)
          .number(origin.output)
          .id(origin.value);
      text.number(terms.listOf(origin)).number(origin.termCount);
    }
    text.close().close();
  }
  return text.close().take();
}

/// The size symbols, and the expressions of numbers over them.
Out sizesOut(const Document& document) {
  Out symbols = Out::array(), numbers = Out::array();
  for (const auto& symbol : document.sizeSymbols())
    symbols.push_back(
        Out::array({textOut(symbol.name), symbol.hint, symbol.least, symbol.greatest ? Out(*symbol.greatest) : Out()}));
  for (std::size_t i = 0; i < document.valueCount(); ++i)
    if (const auto expression = document.sizeExpression(idOf<ValueId>(i)); !expression.empty())
      numbers.push_back(Out::array({i, textOut(expression)}));
  return {{"symbols", std::move(symbols)}, {"numbers", std::move(numbers)}};
}

}  // namespace

Counts countsOf(const Document& document) {
  return {document.stringCount(),  document.metaCount(),   document.symbolCount(),
          document.patternCount(), document.sourceCount(), document.subgraphCount(),
          document.storageCount(), document.valueCount(),  document.boundSymbolCount()};
}

std::vector<Record> documentRecords(const Document& document, const std::string& folder) {
  const auto counts = countsOf(document);
  const TermLists terms(document);
  const auto record = [&](const char* table, std::string content) {
    return Record{folder + "document/" + table + ".json", std::move(content)};
  };
  return {
      record("strings",
             listOf<StringId>(counts.strings, [&](StringId id) { return textOut(document.text(id)); }).dump()),
      record("metas", listOf<MetaId>(counts.metas, [&](MetaId id) { return metaOut(document.meta(id)); }).dump()),
      record("symbols",
             listOf<SymbolId>(counts.symbols, [&](SymbolId id) { return symbolOut(document.symbol(id)); }).dump()),
      record("patterns",
             listOf<PatternId>(counts.patterns, [&](PatternId id) { return patternOut(document.pattern(id)); }).dump()),
      record("sources",
             listOf<SourceStackId>(counts.sources, [&](SourceStackId id) { return sourceOut(document.source(id)); })
                 .dump()),
      record("subgraphs",
             listOf<SubgraphId>(counts.subgraphs, [&](SubgraphId id) { return subgraphOut(document.subgraph(id)); })
                 .dump()),
      record("storages", storagesText(document)),
      record("values", valuesText(document)),
      record("terms", terms.text()),
      record("ops", opsText(document, terms)),
      record("sizes", sizesOut(document).dump()),
  };
}

}  // namespace retrograd::session
