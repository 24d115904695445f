#include "core/formats/pt2/pt2.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>
#include <vector>

#include "core/base/error.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/pt2/pt2_graph.h"
#include "core/formats/pt2/pt2_signature.h"
#include "core/formats/pt2/pt2_values.h"
#include "core/formats/pt2/pt2_weights.h"
#include "core/sizes/size_expression.h"
#include "core/trace/document.h"

namespace retrograd {
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

/// The symbols over which the sizes of `document` are expressions, with their hints and the ranges of the program's
/// `range_constraints`. Sizes that only data decide ("u0") are not symbols of the inputs and are left out.
std::vector<SizeSymbol> readSizeSymbols(const Json& program, const Document& document) {
  SymbolCollector collector;
  for (std::size_t i = 0; i < document.metaCount(); ++i)
    collector.visit(document.meta(MetaId(static_cast<std::int64_t>(i))));
  if (const Json* numbers = program.at("graph_module").at("graph").find("sym_int_values");
      numbers && numbers->isObject())
    for (const auto& [name, number] : numbers->members()) {
      const auto n = pt2::readSymbolicInt(number);
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

/// The program's `guards_code`.
std::vector<std::string> readGuards(const Json& program) {
  std::vector<std::string> guards;
  for (const auto& guard : program.itemsAt("guards_code"))
    if (guard.isString()) guards.emplace_back(guard.text());
  return guards;
}

Argument numberOf(const PickleValue& value) {
  switch (value.kind) {
    case PickleValue::Kind::none: return Argument::ofNone();
    case PickleValue::Kind::boolean: return Argument::ofBool(value.integer != 0);
    case PickleValue::Kind::integer: return Argument::ofInt(value.integer);
    case PickleValue::Kind::real: return Argument::ofReal(value.real);
    case PickleValue::Kind::complex: return Argument::ofComplex(value.real, value.imaginary);
    case PickleValue::Kind::string: return Argument::ofString(value.text);
    default: badInput("a value that is neither tensor nor number");
  }
}

void checkFits(const TensorMeta& sample, const TensorMeta& input, const std::string& name) {
  bool fits = sample.dtype == input.dtype && sample.sizes.size() == input.sizes.size();
  for (std::size_t i = 0; fits && i < input.sizes.size(); ++i) {
    const bool symbolic = i < input.symbols.size() && !input.symbols[i].empty();
    fits = symbolic || sample.sizes[i] == input.sizes[i];
  }
  if (!fits)
    badInput("the sample for '" + name + "' is " + typeComment(sample) + ", the input is " + typeComment(input));
}

void match(const Pickle& pickle, ModelFile& file, TensorMap& tensors, std::map<std::string, Argument>& numbers) {
  const auto leaves = leavesOf(pickle, pickle.root);
  std::size_t next = 0;
  for (const auto& spec : file.computation.inputs) {
    if (spec.kind != InputKind::user) continue;
    if (next >= leaves.size()) badInput("fewer sample values than inputs");
    const auto& leaf = pickle.at(leaves[next++]);
    if (spec.value && file.document->isTensor(spec.value)) {
      if (leaf.kind != PickleValue::Kind::tensor) badInput("the sample for '" + spec.name + "' is not a tensor");
      checkFits(leaf.tensor.meta, file.document->meta(spec.value), spec.name);
      tensors[spec.name] = leaf.tensor;
    } else {
      numbers[spec.name] = numberOf(leaf);
    }
  }
  if (next != leaves.size()) badInput("more sample values than inputs");
}

/// Reads data/sample_inputs/<model>.pt, the pickled (args, kwargs), and matches its leaves to the user inputs in order.
/// Samples that cannot be read or do not fit are a note among the file's problems, never an error.
void readSamples(const std::shared_ptr<const Archive>& archive, const std::string& model, ModelFile& file) {
  const std::string record = "data/sample_inputs/" + model + ".pt";
  if (!archive->has(record)) return;
  try {
    const Pickle pickle = readPickle(Archive::open(archive->read(record), record));
    TensorMap tensors;
    std::map<std::string, Argument> numbers;
    match(pickle, file, tensors, numbers);
    file.sampleInputs = std::move(tensors);
    for (auto& [name, number] : numbers) file.sampleNumbers[name] = std::move(number);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::cancelled) throw;
    file.problems.push_back({Problem::Severity::note, "sample inputs were not read: " + e.message(), record, -1});
  }
}

constexpr std::string_view modelFolder = "models/", jsonEnding = ".json";

bool isModelRecord(std::string_view name) {
  return name.starts_with(modelFolder) && name.ends_with(jsonEnding) &&
         name.find('/', modelFolder.size()) == std::string_view::npos;
}

void checkByteOrder(const Archive& archive) {
  if (archive.has("byteorder") && archive.read("byteorder").text() != "little")
    badInput("written on a big-endian machine; weights are read as little-endian", "byteorder");
}

void noteOtherModels(const Archive& archive, const std::string& record, std::vector<Problem>& problems) {
  for (const auto& entry : archive.entries())
    if (isModelRecord(entry.name) && entry.name != record)
      problems.push_back(
          {Problem::Severity::note, "the archive holds a further graph, which is not shown", entry.name, -1});
}

void takeWeights(const pt2::WeightTable& table, ModelFile& file) {
  for (const auto& [name, weight] : table.weights) file.weights[name] = weight.tensor;
  for (const auto& spec : file.computation.inputs) {
    const pt2::Weight* weight = spec.storageKey.empty() ? nullptr : table.find(spec.target);
    if (weight) (spec.kind == InputKind::constant ? file.constants : file.weights)[spec.target] = weight->tensor;
  }
}

PassRecord readPass(const ModelFile& file, const Json& program) {
  PassRecord record;
  record.pass = "Read";
  record.parameters.emplace_back("torch", file.torchVersion);
  if (const Json* verifiers = program.find("verifiers");
      verifiers && verifiers->isArray() && !verifiers->items().empty())
    record.parameters.emplace_back("dialect", std::string(verifiers->items().front().text()));
  return record;
}

void readProgram(const Json& program, const pt2::WeightTable& weights, const SymbolLookup& lookup,
                 const Progress& progress, ModelFile& file) {
  file.torchVersion = program.textAt("torch_version");
  const Json& module = program.at("graph_module");
  const Json &graph = module.at("graph"), &signature = module.at("signature");
  auto& computation = file.computation;
  computation.inputs = pt2::readInputSpecs(signature, graph, weights, file.sampleNumbers);
  std::unordered_map<std::string, StorageId> storages;
  pt2::GraphReader reader(*file.document, lookup, progress);
  pt2::GraphBody body = reader.readMain(graph, computation.inputs, storages);
  computation.outputs = pt2::readOutputSpecs(signature, body);
  pt2::checkWeights(computation.inputs, weights, *file.document);
  computation.trace.kind = TraceKind::computation;
  computation.trace.name = "computation";
  computation.trace.ops = std::move(body.ops);
  computation.trace.inputs = std::move(body.inputs);
  for (const auto& output : computation.outputs) computation.trace.outputs.push_back(output.value);
  computation.trace.resultCount = computation.trace.outputs.size();
  computation.trace.history.push_back(readPass(file, program));
  file.document->setSizeSymbols(readSizeSymbols(program, *file.document));
  file.guards = readGuards(program);
  for (auto& problem : reader.problems()) file.problems.push_back(std::move(problem));
  for (const auto& spec : computation.inputs)
    if (const pt2::Weight* weight = spec.storageKey.empty() ? nullptr : weights.find(spec.target))
      file.document->storage(spec.value).bytes = static_cast<std::int64_t>(weight->tensor.bytes);
}

}  // namespace

std::string findModelRecord(const Archive& archive) {
  if (archive.has("models/model.json")) return "models/model.json";
  std::vector<std::string> found;
  for (const auto& entry : archive.entries())
    if (isModelRecord(entry.name)) found.push_back(entry.name);
  return found.empty() ? std::string() : *std::min_element(found.begin(), found.end());
}

ModelFile readPt2(const std::shared_ptr<const Archive>& archive, const SymbolLookup& lookup, const Progress& progress) {
  ModelFile file;
  file.path = archive->place();
  file.document = std::make_shared<Document>();
  const std::string record = findModelRecord(*archive);
  if (record.empty()) badInput("no graph (models/*.json) in the archive");
  const std::string model = record.substr(modelFolder.size(), record.size() - modelFolder.size() - jsonEnding.size());
  checkByteOrder(*archive);
  noteOtherModels(*archive, record, file.problems);
  const auto weights = pt2::readWeights(archive, model, progress);
  try {
    progress.at("Parse graph", 0);
    const auto start = std::chrono::steady_clock::now();
    const JsonTree tree(archive->read(record).text());
    readProgram(tree.root(), weights, lookup, progress, file);
    file.computation.trace.history.back().seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } catch (const Error& e) {
    throw e.code() == ErrorCode::cancelled ? e : e.at(record);
  }
  takeWeights(weights, file);
  readSamples(archive, model, file);
  return file;
}

}  // namespace retrograd
