#include "core/formats/pt2/pt2.h"

#include <algorithm>
#include <chrono>

#include "core/base/error.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/pt2/pt2_graph.h"
#include "core/formats/pt2/pt2_samples.h"
#include "core/formats/pt2/pt2_signature.h"
#include "core/formats/pt2/pt2_sizes.h"
#include "core/formats/pt2/pt2_weights.h"

namespace retrograd {
namespace {

constexpr std::string_view modelFolder = "models/", jsonEnding = ".json";

bool isModelRecord(std::string_view name) {
  return name.starts_with(modelFolder) && name.ends_with(jsonEnding) &&
         name.find('/', modelFolder.size()) == std::string_view::npos;
}

void checkByteOrder(const Archive& archive) {
  if (archive.has("byteorder") && archive.read("byteorder").text() != "little")
    throw Error(ErrorCode::badInput, "written on a big-endian machine; weights are read as little-endian", "byteorder");
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
  if (const Json* version = program.find("torch_version"); version && version->isString())
    file.torchVersion = version->text();
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
  file.document->setSizeSymbols(pt2::readSizeSymbols(program, *file.document));
  file.guards = pt2::readGuards(program);
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
  if (record.empty()) throw Error(ErrorCode::badInput, "no graph (models/*.json) in the archive");
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
  pt2::readSamples(archive, model, file);
  return file;
}

}  // namespace retrograd
