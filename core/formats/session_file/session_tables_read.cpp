// The tables of a Document from their records. Sizes of all tables come first, so that ids of later ones can be
// checked.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/user_choice.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/session_file/session_codec.h"

namespace retrograd::session {
namespace {

constexpr std::int64_t int16Max = std::numeric_limits<std::int16_t>::max(),
                       int32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t mostValuesOfAnOp = std::numeric_limits<std::uint16_t>::max();
constexpr std::int64_t lastValueKind = static_cast<std::int64_t>(ValueKind::gradient),
                       lastRole = static_cast<std::int64_t>(Role::cotangent);

/// One record, parsed.
struct Table {
  std::string name;
  ByteRegion content;
  JsonTree tree;

  Table(const Archive& archive, const std::string& folder, const char* table)
      : name(folder + "document/" + table + ".json"), content(archive.read(name)), tree(parse()) {
    content = {};
  }
  std::size_t size() const { return tree.root().items().size(); }

 private:
  JsonTree parse() const {
    try {
      JsonTree parsed(content.text());
      if (std::cmp_greater(parsed.root().items().size(), int32Max)) badInput("more entries than ids");
      return parsed;
    } catch (const Error& e) {
      throw e.at(name);
    }
  }
};

class DocumentReader {
 public:
  DocumentReader(const Archive& archive, const std::string& folder, const SymbolLookup& lookup,
                 const Progress& progress)
      : archive_(archive), folder_(folder), lookup_(lookup), progress_(progress) {}

  std::shared_ptr<Document> run() {
    const auto table = [this](const char* name) { return Table(archive_, folder_, name); };
    const Table strings = table("strings"), metas = table("metas"), symbols = table("symbols"),
                patterns = table("patterns");
    const Table sources = table("sources"), subgraphs = table("subgraphs"), storages = table("storages"),
                values = table("values");
    const Table terms = table("terms"), ops = table("ops");
    counts_ = {strings.size(),   metas.size(),    symbols.size(), patterns.size(), sources.size(),
               subgraphs.size(), storages.size(), values.size(),  ops.size()};
    fillNew(strings, [this](const Json& row) { return document_->intern(readText(row)); });
    fillNew(metas, [this](const Json& row) { return document_->internMeta(readMeta(row)); });
    fillNew(symbols, [this](const Json& row) { return document_->internSymbol(readSymbol(row)); });
    fillNew(patterns, [this](const Json& row) { return document_->internPattern(readPattern(row)); });
    fillNew(sources, [this](const Json& row) { return document_->internSource(readSource(row)); });
    fill(subgraphs, [this](const Json& row) { document_->addSubgraph(readSubgraph(row)); });
    fill(storages, [this](const Json& row) { readStorage(row); });
    fill(values, [this](const Json& row) { document_->addValue(readValue(row)); });
    fill(terms, [this](const Json& row) { terms_.push_back(readIds<ValueId>(row, counts_.values)); });
    placed_.resize(terms_.size());
    fill(ops, [this](const Json& row) { readOp(row); });
    return document_;
  }

 private:
  template <class Read>
  void fill(const Table& table, Read&& read) {
    progress_.at("Read tables", static_cast<double>(++tablesRead_) / 10);
    try {
      forEachRow(table.tree.root(), read);
    } catch (const Error& e) {
      throw e.at(table.name);
    }
  }

  /// Tables hold nothing twice: interning must give each entry the id of its row, or all after it would be others.
  template <class Intern>
  void fillNew(const Table& table, Intern&& intern) {
    std::int32_t next = 0;
    fill(table, [&](const Json& row) {
      if (intern(row).index != next++) badInput("is twice in the table");
    });
  }

  Symbol readSymbol(const Json& row) const {
    Symbol symbol;
    symbol.name = readText(row.at("name"));
    symbol.known = row.at("known").boolean();
    symbol.isHigherOrder = symbol.name.starts_with("higher_order.");
    if (!symbol.known || symbol.isHigherOrder) return symbol;
    auto found = lookup_(symbol.name);
    if (!found && isNumberOperator(symbol.name)) return symbol;
    if (!found || found->name != symbol.name)
      badInput("names " + symbol.name +
               ", an op that this LibTorch does not have or that no file may call (ops of a library need " +
               nameOf(UserChoice::library) + ")");
    if (const auto schema = readText(row.at("schema")); found->schema != schema)
      badInput("was saved with another LibTorch: " + symbol.name + " is " + found->schema + " now and was " + schema +
               "; open the model file itself and save a session of it");
    return *std::move(found);
  }

  std::vector<Argument> readArguments(const Json& list) const {
    std::vector<Argument> arguments;
    for (const auto& item : list.items()) arguments.push_back(readArgument(item, counts_.subgraphs));
    return arguments;
  }

  CallPattern readPattern(const Json& row) const {
    CallPattern pattern;
    pattern.arguments = readArguments(row.at("arguments"));
    pattern.operandCount = static_cast<std::int32_t>(readInteger(row.at("operands"), 0, mostValuesOfAnOp));
    for (const auto& count : row.at("returns").items())
      pattern.returns.push_back(static_cast<std::int32_t>(readInteger(count, -1, mostValuesOfAnOp)));
    if (const Json* names = row.find("names")) pattern.names = readTexts(*names);
    if (!pattern.names.empty() && pattern.names.size() != pattern.arguments.size())
      badInput("not as many names as arguments");
    return pattern;
  }

  static SourceStack readSource(const Json& row) {
    SourceStack stack;
    for (const auto& item : row.items()) {
      Row cells(item, 4);
      SourceFrame frame;
      frame.file = readText(cells.next());
      frame.line = static_cast<int>(cells.integer(std::numeric_limits<std::int32_t>::min(), int32Max));
      frame.function = readText(cells.next());
      frame.code = readText(cells.next());
      stack.push_back(std::move(frame));
    }
    return stack;
  }

  Subgraph readSubgraph(const Json& row) const {
    Subgraph body;
    body.name = readText(row.at("name"));
    body.inputs = readIds<ValueId>(row.at("inputs"), counts_.values);
    body.outputs = readArguments(row.at("outputs"));
    body.outputValues = readIds<ValueId>(row.at("values"), counts_.values);
    body.ops = readIds<BoundSymbolId>(row.at("ops"), counts_.ops);
    if (std::any_of(body.ops.begin(), body.ops.end(), [](BoundSymbolId op) { return !op; }))
      badInput("an op of the body is none");
    for (const auto& output : body.outputs)
      forEachOperand(output, [&](std::size_t hole) {
        if (hole >= body.outputValues.size()) badInput("output hole " + std::to_string(hole) + " is beyond the values");
      });
    return body;
  }

  void readStorage(const Json& json) {
    Row row(json, 3);
    const auto bytes = row.integer(0);
    const auto first = row.id<ValueId>(counts_.values);
    document_->addStorage(bytes, first, row.flag());
  }

  Value readValue(const Json& json) const {
    Row row(json, 7);
    Value value;
    value.name = row.id<StringId>(counts_.strings);
    value.meta = row.id<MetaId>(counts_.metas);
    value.storage = row.id<StorageId>(counts_.storages);
    value.producer = row.id<BoundSymbolId>(counts_.ops);
    value.kind = static_cast<ValueKind>(row.integer(0, lastValueKind));
    value.requiresGrad = row.flag();
    value.version = static_cast<std::int32_t>(row.integer(0, int32Max));
    return value;
  }

  void readOp(const Json& json) {
    Row row(json, 13);
    BoundSymbol op;
    op.symbol = row.id<SymbolId>(counts_.symbols);
    op.pattern = row.id<PatternId>(counts_.patterns);
    if (!op.symbol || !op.pattern) badInput("an op without symbol or call pattern");
    const auto operands = row.ids<ValueId>(counts_.values), outputs = row.ids<ValueId>(counts_.values);
    if (operands.size() > mostValuesOfAnOp || outputs.size() > mostValuesOfAnOp)
      badInput("more than 65535 operands or outputs");
    op.parent = row.id<BoundSymbolId>(counts_.ops);
    op.source = row.id<SourceStackId>(counts_.sources);
    op.module = row.id<StringId>(counts_.strings);
    op.name = row.id<StringId>(counts_.strings);
    op.effects = static_cast<std::uint8_t>(row.integer(0, std::numeric_limits<std::uint8_t>::max()));
    op.gradMode = row.flag();
    op.recomputed = row.flag();
    op.replays = row.id<BoundSymbolId>(counts_.ops);
    if (const Json& origin = row.next(); !origin.items().empty()) op.origin = readOrigin(origin);
    document_->addBoundSymbol(op, operands, outputs);
  }

  Origin readOrigin(const Json& json) {
    Row row(json, 7);
    Origin origin;
    origin.role = static_cast<Role>(row.integer(1, lastRole));
    origin.op = row.id<BoundSymbolId>(counts_.ops);
    origin.operand = static_cast<std::int16_t>(row.integer(-1, int16Max));
    origin.output = static_cast<std::int16_t>(row.integer(-1, int16Max));
    origin.value = row.id<ValueId>(counts_.values);
    const auto list = row.integer(-1, std::ssize(terms_) - 1);
    const auto count = row.integer(0, std::numeric_limits<std::int32_t>::max());
    if (list < 0 && count == 0) return origin;
    const std::size_t index = list;
    if (list < 0 || std::cmp_greater(count, terms_[index].size())) badInput("more terms than the list has");
    auto& place = placed_[index];
    if (place.termCount == 0) document_->setTerms(place, terms_[index]);  // one list for all who refer to it
    origin.termsBegin = place.termsBegin;
    origin.termCount = static_cast<std::uint32_t>(count);
    return origin;
  }

  const Archive& archive_;
  const std::string& folder_;
  const SymbolLookup& lookup_;
  const Progress& progress_;
  std::shared_ptr<Document> document_ = std::make_shared<Document>();
  Counts counts_;
  std::vector<std::vector<ValueId>> terms_;
  std::vector<Origin> placed_;  // by list: where its terms lie in the document
  int tablesRead_ = 0;
};

void readSizes(const Json& json, Document& document) {
  constexpr auto any = std::numeric_limits<std::int64_t>::max();
  std::vector<SizeSymbol> symbols;
  forEachRow(json.at("symbols"), [&](const Json& entry) {
    Row row(entry, 4);
    SizeSymbol symbol;
    symbol.name = readText(row.next());
    symbol.hint = row.integer();
    symbol.least = row.integer(0, any);
    if (const Json& greatest = row.next(); !greatest.isNull())
      symbol.greatest = readInteger(greatest, symbol.least, any);
    symbols.push_back(std::move(symbol));
  });
  document.setSizeSymbols(std::move(symbols));
  forEachRow(json.at("numbers"), [&](const Json& entry) {
    Row row(entry, 2);
    const auto value = row.id<ValueId>(document.valueCount());
    if (!value) badInput("an expression of no value");
    document.setSizeExpression(value, readText(row.next()));
  });
}

}  // namespace

std::shared_ptr<Document> readDocument(const Archive& archive, const std::string& folder, const SymbolLookup& lookup,
                                       const Progress& progress) {
  auto document = DocumentReader(archive, folder, lookup, progress).run();
  if (archive.has(folder +
                  "document/sizes.json"))  // files without dynamic shapes, written before there were any, lack it
    readRecord(archive, folder + "document/sizes.json", [&](const Json& json) { readSizes(json, *document); });
  return document;
}

}  // namespace retrograd::session
