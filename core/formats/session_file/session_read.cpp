#include <filesystem>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/base/number_text.h"
#include "core/base/user_choice.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/kinds/session_records.h"
#include "core/formats/read/read_file.h"
#include "core/formats/session_file/session_codec.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace session {
namespace {

template <class Key, class Value, class ReadKey, class ReadValue>
void readPairs(const Json& json, std::map<Key, Value>& into, ReadKey&& readKey, ReadValue&& readValue) {
  forEachRow(json, [&](const Json& entry) {
    Row row(entry, 2);
    auto key = readKey(row.next());
    if (!into.emplace(std::move(key), readValue(row.next())).second) badInput("is twice in the list");
  });
}

std::uint64_t readSeed(const Json& json) {
  const auto text = json.text();
  const auto seed = numberIn<std::uint64_t>(text);
  if (!seed) badInput("'" + std::string(text) + "' is not a seed");
  return *seed;
}

/// A name, or null; files of earlier days say whether it is double precision.
std::optional<DType> readPrecision(const Json& json) {
  const Json* precision = json.find("precision");
  if (!precision) return json.at("in_double").boolean() ? std::optional(DType::f64) : std::nullopt;
  if (precision->isNull()) return std::nullopt;
  const auto dtype = dtypeFromTorchName(precision->text());
  if (!dtype || !isFloating(*dtype))
    badInput("'" + std::string(precision->text()) + "' is not a precision", "precision");
  return dtype;
}

void checkFormat(std::int64_t format) {
  if (format > SessionFile::format)
    badInput("written by a newer Retrograd, in format " + std::to_string(format) + "; this one reads up to format " +
             std::to_string(SessionFile::format) + ": update Retrograd, or open the model file itself");
  if (format < 1) badInput("of unknown format " + std::to_string(format));
}

/// One level of a session: what was derived from the model file, or from the session under `differentiatedFolder`.
class LevelReader {
 public:
  LevelReader(const std::shared_ptr<const Archive>& archive, std::string folder, TensorReader& tensors,
              const SymbolLookup& lookup, const Progress& progress)
      : archive_(archive), folder_(std::move(folder)), tensors_(tensors), lookup_(lookup), progress_(progress) {}

  SessionFile run() {
    session_.model.document = readDocument(*archive_, folder_, lookup_, progress_);
    counts_ = countsOf(*session_.model.document);
    checkDocument(*session_.model.document);
    read(modelRecord, &LevelReader::readModel);
    readRecord(*archive_, folder_ + computationRecord,
               [&](const Json& json) { readComputation(json, counts_, session_.model.computation); });
    read(tracesRecord, &LevelReader::readTraces);
    read(analysisRecord, &LevelReader::readAnalysis);
    if (archive_->has(folder_ + valuesRecord)) read(valuesRecord, &LevelReader::readValues);
    readDifferentiated();
    progress_.at("Verify traces", 0.9);
    checkTraces(session_);
    checkWeights(session_.model);
    return std::move(session_);
  }

 private:
  void readDifferentiated() {
    const auto folder = folder_ + differentiatedFolder;
    if (!archive_->has(folder + modelRecord)) return;
    constexpr std::size_t deepest = 16;
    if (folder.size() > deepest * std::string_view(differentiatedFolder).size())
      badInput("differentiated too many times", folder);
    session_.differentiated =
        std::make_shared<SessionFile>(LevelReader(archive_, folder, tensors_, lookup_, progress_).run());
    if (session_.differentiated->model.embedded != session_.model.embedded)
      badInput("is embedded in one part and not in another");
  }

  void read(const char* record, void (LevelReader::*member)(const Json&)) {
    progress_.at("Read session", 0.5);
    readRecord(*archive_, folder_ + record, [&](const Json& json) { (this->*member)(json); });
  }

  void readTensors(const Json& json, TensorMap& into, bool mayRefer = false) {
    readPairs(json, into, readText, [&](const Json& tensor) { return tensors_.read(tensor, mayRefer); });
  }
  void readTensors(const Json& json, std::map<ValueId, TensorData>& into) {
    readPairs(
        json, into, [&](const Json& id) { return readId<ValueId>(id, counts_.values); },
        [&](const Json& tensor) { return tensors_.read(tensor); });
  }
  void readNumbers(const Json& json, std::map<std::string, Argument>& into) {
    readPairs(json, into, readText, [&](const Json& number) { return readArgument(number, counts_.subgraphs); });
  }

  void readModel(const Json& json) {
    auto& model = session_.model;
    model.path = readText(json.at("path"));
    session_.relativePath = readText(json.at("relative"));
    model.identity.size =
        static_cast<std::uint64_t>(readInteger(json.at("size"), 0, std::numeric_limits<std::int64_t>::max()));
    model.identity.checksum =
        static_cast<std::uint32_t>(readInteger(json.at("checksum"), 0, std::numeric_limits<std::uint32_t>::max()));
    model.torchVersion = readText(json.at("torch"));
    model.embedded = json.at("embedded").boolean();
    readTensors(json.at("weights"), model.weights, !model.embedded);
    readTensors(json.at("constants"), model.constants, !model.embedded);
    readTensors(json.at("samples"), model.sampleInputs, !model.embedded);
    readNumbers(json.at("sample_numbers"), model.sampleNumbers);
    if (const Json* guards = json.find("guards"))
      model.guards = readTexts(*guards);  // there since shapes may be dynamic
    model.problems = readProblems(json.at("problems"), counts_.ops);
  }

  void readTraces(const Json& json) {
    session_.model.computation.trace = readTrace(json.at("computation"), counts_);
    session_.joint = readTrace(json.at("joint"), counts_);
    session_.forward = readTrace(json.at("forward"), counts_);
    session_.backward = readTrace(json.at("backward"), counts_);
  }

  void readAnalysis(const Json& json) {
    session_.seed = readSeed(json.at("seed"));
    session_.minCut = json.at("min_cut").boolean();
    if (const Json& budget = json.at("budget"); !budget.isNull())
      session_.budget = readInteger(budget, 0, std::numeric_limits<std::int64_t>::max());
    session_.recompute = readTexts(json.at("recompute"));
    session_.regions = json.at("regions").boolean();
    if (const Json& inputs = json.at("grad_inputs"); !inputs.isNull()) session_.gradInputs = readTexts(inputs);
    session_.precision = readPrecision(json);
    readTensors(json.at("inputs"), session_.inputs);
    readNumbers(json.at("numbers"), session_.numbers);
    readTensors(json.at("cotangents"), session_.cotangents);
    session_.inputSource = readTexts(json.at("input_source"));
    readTensors(json.at("constants"), session_.constants);
    readPairs(
        json.at("mutated"), session_.mutated,
        [](const Json& input) -> std::size_t {
          return readInteger(input, 0, std::numeric_limits<std::int32_t>::max());
        },
        [&](const Json& value) { return readId<ValueId>(value, counts_.values); });
    if (const Json* gradients = json.find("gradients"))  // there since values know their gradients
      readPairs(
          *gradients, session_.gradients, [&](const Json& value) { return readId<ValueId>(value, counts_.values); },
          [&](const Json& value) { return readId<ValueId>(value, counts_.values); });
    session_.dataDependent = readTexts(json.at("data_dependent"));
    session_.problems = readProblems(json.at("problems"), counts_.ops);
    for (const auto& [pass, time] : json.at("seconds").members()) session_.seconds[std::string(pass)] = time.number();
  }

  void readValues(const Json& json) {
    readTensors(json.at("tensors"), session_.values);
    readPairs(
        json.at("numbers"), session_.valueNumbers, [&](const Json& id) { return readId<ValueId>(id, counts_.values); },
        [&](const Json& number) { return readArgument(number, counts_.subgraphs); });
  }

  const std::shared_ptr<const Archive>& archive_;
  const std::string folder_;
  TensorReader& tensors_;
  const SymbolLookup& lookup_;
  const Progress& progress_;
  Counts counts_;
  SessionFile session_;
};

std::map<std::string, std::string> readMarks(const Archive& archive) {
  std::map<std::string, std::string> marks;
  for (const auto& entry : archive.entries()) {
    const std::string_view record = entry.name;
    if (!record.starts_with(marksFolder) || !record.ends_with(jsonEnding)) continue;
    const auto name = record.substr(marksFolder.size(), record.size() - marksFolder.size() - jsonEnding.size());
    if (!isMarkName(name)) badInput("is not a name of marks", entry.name);
    readRecord(archive, entry.name, [](const Json&) {});  // JSON, whatever it says
    marks.emplace(name, archive.read(entry.name).text());
  }
  return marks;
}

/// The model file: where it lay seen from the session file, which may have moved with it, else where it was.
std::string findModelFile(const SessionFile& session, const std::string& path) {
  const auto& model = session.model;
  const auto beside = (fs::path(path).parent_path() / session.relativePath).lexically_normal().string();
  std::string changed;
  for (const auto& candidate : {beside, model.path}) {
    std::error_code ignored;
    if (!fs::is_regular_file(candidate, ignored)) continue;
    try {
      const auto bytes = mapFile(candidate);
      if (bytes.size == model.identity.size && identityOf(bytes) == model.identity) return candidate;
    } catch (const Error&) {  // no longer readable: changed
    }
    if (changed.empty()) changed = candidate;
  }
  if (!changed.empty())
    badInput("the model file " + changed +
                 " was changed since the session was saved: restore the earlier file, or open the model file itself",
             path);
  badInput("the model file " + model.path + " is missing, and " + beside +
               " too: put it in either place (a session saved with " + nameOf(UserChoice::embeddedWeights) +
               " needs none)",
           path);
}

/// What lies in the model file instead of in the session file.
void takeReferenced(TensorMap& wanted, const TensorMap& found, const std::string& path) {
  for (auto& [name, tensor] : wanted) {
    if (tensor.owner) continue;  // in the session file
    const auto it = found.find(name);
    if (it == found.end()) badInput("it holds no data for '" + name + "'", path);
    if (it->second.meta != tensor.meta)
      badInput(
          "'" + name + "' is " + typeComment(it->second.meta) + ", the session has it as " + typeComment(tensor.meta),
          path);
    tensor = it->second;
  }
}

void attachModelFile(SessionFile& session, const std::string& path, const SymbolLookup& lookup,
                     const Progress& progress) {
  auto* first = &session;
  while (first->differentiated) first = first->differentiated.get();
  const auto found = findModelFile(*first, path);
  const auto file = readModelFile(found, lookup, progress);
  for (auto* level = &session; level; level = level->differentiated.get()) {
    auto& model = level->model;
    model.path = found;
    takeReferenced(model.weights, file.weights, found);
    takeReferenced(model.constants, file.constants, found);
    takeReferenced(model.sampleInputs, file.sampleInputs, found);
  }
}

}  // namespace
}  // namespace session

SessionFile readSessionRecords(const std::shared_ptr<const Archive>& archive, const SymbolLookup& lookup,
                               const Progress& progress) {
  using namespace session;
  if (!archive->has(typeRecord) || archive->read(typeRecord).text() != mediaType) badInput("is not a session file");
  readRecord(*archive, sessionRecord, [](const Json& json) { checkFormat(json.at("format").integer()); });
  TensorReader tensors(archive);
  auto result = LevelReader(archive, "", tensors, lookup, progress).run();
  result.marks = readMarks(*archive);
  return result;
}

SessionFile readSessionFile(const std::string& path, const SymbolLookup& lookup, const Progress& progress) {
  return readingFile(path, [&] {
    const auto bytes = mapFile(path);
    const ReadingScope scope(bytes.size);
    auto session = readUnchanged(
        bytes.data, [&] { return readSessionRecords(Archive::open(bytes, path, progress), lookup, progress); });
    if (!session.model.embedded) session::attachModelFile(session, path, lookup, progress);
    return session;
  });
}

}  // namespace retrograd
