#include "core/torch/reading/session_file.h"

#include <chrono>

#include "core/base/id_vector.h"
#include "core/base/number_text.h"
#include "core/formats/checkpoint/given_weights.h"
#include "core/formats/session_file/session_file.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/tracing/op_table.h"
#include "core/torch/tracing/recorded_generator.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

const std::string threadsMark = "threads";
/// The state that the seed is short for, where it was recorded in a training loop.
const std::string generatorMark = "generator";

/// Reading looks each op up again; what it would refuse must not be written.
void checkOps(const Analysis& analysis) {
  const auto& document = *analysis.document;
  IdVector<SymbolId, char> seen(document.symbolCount(), 0);
  for (auto op : analysis.joint.ops) {
    const auto id = document.boundSymbol(op).symbol;
    if (std::exchange(seen[id], 1)) continue;
    const auto& symbol = document.symbol(id);
    if (!isOpaque(symbol) && !lookupSymbol(symbol.name))
      throw Error(ErrorCode::unsupportedOp,
                  "a file may not name this op, which the derived traces call: such a model cannot be saved as a "
                  "session; keep the model file",
                  symbol.qualifiedName());
  }
}

std::map<std::string, double> secondsOf(const AnalysisTimes& times) {
  return {{"read", times.read}, {"trace", times.trace}, {"joint", times.joint}, {"split", times.split}};
}

double secondsOf(const std::map<std::string, double>& seconds, const std::string& pass) {
  const auto it = seconds.find(pass);
  return it == seconds.end() ? 0 : it->second;
}

SessionFile sessionOf(const Analysis& analysis) {
  checkOps(analysis);
  SessionFile session{
      .model = analysis.file, .joint = analysis.joint, .forward = analysis.forward, .backward = analysis.backward};
  session.inputs = analysis.request.inputs;
  session.numbers = analysis.request.numbers;
  session.cotangents = analysis.request.cotangents;
  session.inputSource = analysis.inputSource;
  session.constants = analysis.constants;
  session.mutated = analysis.mutated;
  session.gradients = analysis.gradients;
  session.dataDependent = analysis.dataDependent;
  session.problems = analysis.problems;
  session.seed = analysis.request.seed;
  session.minCut = analysis.request.partition.kind == PartitionOptions::minCut;
  session.budget = analysis.request.partition.budget;
  session.recompute = analysis.request.partition.recompute;
  session.regions = analysis.request.partition.regions;
  session.gradInputs = analysis.request.gradInputs;
  session.precision = analysis.request.precision;
  session.seconds = secondsOf(analysis.times);
  session.values = analysis.values;
  if (analysis.leftOut) session.values.insert(analysis.leftOut->filled.begin(), analysis.leftOut->filled.end());
  session.valueNumbers = analysis.valueNumbers;
  if (analysis.differentiated)
    session.differentiated = std::make_shared<SessionFile>(sessionOf(*analysis.differentiated));
  return session;
}

/// What was filled in for an opaque op was saved with the values.
void restoreLeftOut(Analysis& analysis) {
  const auto& document = *analysis.document;
  const auto& ops = analysis.joint.ops;
  if (std::ranges::none_of(ops, [&](BoundSymbolId op) { return isOpaque(document, op); })) return;
  std::map<ValueId, TensorData> filled;
  for (auto op : ops)
    for (auto output : document.outputs(op))
      if (const auto value = analysis.values.find(output); isOpaque(document, op) && value != analysis.values.end()) {
        filled.insert(*value);
        analysis.request.filled.emplace(document.displayName(output), value->second);
      }
  analysis.leftOut = std::make_shared<LeftOut>(leftOutOf(document, ops, std::move(filled)));
}

std::shared_ptr<Analysis> analysisOf(SessionFile session, const std::shared_ptr<const RuleRegistry>& rules) {
  auto analysis = std::make_shared<Analysis>();
  analysis->file = std::move(session.model);
  analysis->document = analysis->file.document;
  analysis->joint = std::move(session.joint);
  analysis->forward = std::move(session.forward);
  analysis->backward = std::move(session.backward);
  analysis->links = OriginLinks(*analysis->document, analysis->joint);
  analysis->request.inputs = std::move(session.inputs);
  analysis->request.numbers = std::move(session.numbers);
  analysis->request.cotangents = std::move(session.cotangents);
  analysis->inputSource = std::move(session.inputSource);
  analysis->constants = std::move(session.constants);
  analysis->mutated = std::move(session.mutated);
  analysis->gradients = std::move(session.gradients);
  analysis->dataDependent = std::move(session.dataDependent);
  analysis->problems = std::move(session.problems);
  analysis->request.seed = session.seed;
  analysis->request.partition = {session.minCut ? PartitionOptions::minCut : PartitionOptions::defaultKind,
                                 session.budget, std::move(session.recompute), session.regions};
  analysis->request.rules = rules;
  analysis->request.gradInputs = std::move(session.gradInputs);
  analysis->request.precision = session.precision;
  analysis->device = deviceOf(*analysis->document, analysis->computation().trace.inputs);
  analysis->values = std::move(session.values);
  restoreLeftOut(*analysis);
  analysis->valueNumbers = std::move(session.valueNumbers);
  analysis->marks = std::move(session.marks);
  analysis->times = {secondsOf(session.seconds, "read"), secondsOf(session.seconds, "trace"),
                     secondsOf(session.seconds, "joint"), secondsOf(session.seconds, "split")};
  if (session.differentiated) analysis->differentiated = analysisOf(std::move(*session.differentiated), rules);
  return analysis;
}

bool isRepro(const ModelFile& file) {
  const auto& history = file.computation.trace.history;
  return !history.empty() && !history.front().parameters.empty() && history.front().parameters.front().first == "repro";
}

}  // namespace

bool embedsWeights(const Analysis& analysis, const SaveSessionOptions& options) {
  const auto& first = firstOf(analysis);
  return options.embed || first.request.precision || !first.request.data.weights.empty() || isRepro(first.file) ||
         first.file.isText || first.file.embedded;
}

void saveSession(const Analysis& analysis, const std::string& path, const SaveSessionOptions& options,
                 const Progress& progress) {
  auto session = sessionOf(analysis);
  const auto threads = options.threads > 0 ? options.threads : savedThreads(analysis).value_or(threadCount());
  const ThreadScope scope(threads);
  session.model.embedded = embedsWeights(analysis, options);
  if (options.values && analysis.derived()) {
    auto values = runValues(analysis, progress);
    session.values = std::move(values.tensors);
    if (analysis.leftOut) session.values.insert(analysis.leftOut->filled.begin(), analysis.leftOut->filled.end());
    session.valueNumbers = std::move(values.numbers);
  }
  session.marks = options.marks.value_or(analysis.marks);
  session.marks[threadsMark] = std::to_string(threads);
  if (const auto state = statesAsText(session.seed)) session.marks[generatorMark] = '"' + *state + '"';
  else session.marks.erase(generatorMark);
  writeSessionFile(path, session, analysis.sessionPath);
}

std::shared_ptr<const Analysis> loadSession(const std::string& path, const Progress& progress,
                                            const std::shared_ptr<const RuleRegistry>& rules) {
  const auto start = std::chrono::steady_clock::now();
  auto session = readSessionFile(path, lookupSymbol, progress);
  if (const auto state = session.marks.find(generatorMark); state != session.marks.end()) {
    const auto& quoted = state->second;
    if (quoted.size() < 2) throw Error(ErrorCode::badInput, "the state of the generator is damaged", path);
    if (const auto seed = seedOfStates(quoted.substr(1, quoted.size() - 2)); seed != session.seed)
      throw Error(ErrorCode::badInput, "the state of the generator is not that of the seed", path);
  }
  auto analysis = analysisOf(std::move(session), rules);
  analysis->sessionPath = path;
  analysis->file.format = Format::session;
  analysis->times.read = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return analysis;
}

std::optional<int> savedThreads(const Analysis& analysis) {
  constexpr int most = 1024;
  const auto mark = analysis.marks.find(threadsMark);
  if (mark == analysis.marks.end()) return std::nullopt;
  const auto threads = numberIn<int>(mark->second);
  return threads && *threads > 0 && *threads <= most ? threads : std::nullopt;
}

DerivationRequest optionsFromModel(const Analysis& analysis) {
  const auto& first = firstOf(analysis);
  DerivationRequest options = first.request;
  options.data.batch.clear();  // the inputs that were used are there
  options.device = first.device;
  options.exactCotangents = false;
  options.createGraph = false;
  options.seed = analysis.request.seed;
  options.partition = analysis.request.partition;
  options.order = orderOf(analysis);
  options.again = differentiatedKind(analysis);
  options.rules = analysis.request.rules;
  return options;
}

DerivationRequest overlaid(const Analysis& stored, const DerivationRequest& given) {
  if (!given.data.compile.empty() || given.data.rank)
    throw Error(ErrorCode::badUse, "a session holds one compile of one rank: choose another with the log itself",
                stored.sessionPath);
  DerivationRequest options = optionsFromModel(stored);
  if (!given.inputs.empty()) {
    options.inputs = given.inputs;
    options.cotangents.clear();
  }
  if (!given.data.weights.empty()) options.data = given.data;
  if (!given.data.batch.empty()) {
    options.data.batch = given.data.batch;
    options.data.partial = given.data.partial;
    options.inputs = given.inputs;
    options.cotangents.clear();
  }
  for (const auto& [name, shape] : given.shapes) {
    options.inputs.erase(name);
    options.shapes.insert_or_assign(name, shape);
    options.cotangents.clear();
  }
  for (const auto& [name, number] : given.numbers) options.numbers.insert_or_assign(name, number);
  if (!given.filled.empty()) options.filled = given.filled;
  if (!given.cotangents.empty()) options.cotangents = given.cotangents;
  options.exactCotangents = given.exactCotangents;
  if (given.gradInputs) options.gradInputs = given.gradInputs;
  if (given.seed != 0) options.seed = given.seed;
  if (given.precision) options.precision = given.precision;
  if (given.device) options.device = given.device;
  if (given.partition != PartitionOptions()) options.partition = given.partition;
  if (given.order > 1) options.order = given.order;
  if (given.order > 1) options.again = given.again;
  if (given.rules) options.rules = given.rules;
  return options;
}

std::shared_ptr<const Analysis> deriveAnew(const Analysis& stored, const DerivationRequest& options,
                                           const Progress& progress) {
  const auto& first = firstOf(stored);
  ModelFile file = first.file;
  file.document = std::make_shared<Document>(*first.document);
  bindWeights(file, options.data, progress);
  auto analysis = std::const_pointer_cast<Analysis>(analyse(std::move(file), options, progress));
  analysis->sessionPath = stored.sessionPath;
  analysis->file.format = Format::session;
  analysis->marks = stored.marks;
  analysis->problems.push_back({Problem::Severity::note,
                                "derived again with other inputs or options: the traces are not those that were saved",
                                stored.sessionPath, -1});
  return analysis;
}

ModelFile modelOfSession(const std::string& path, const Progress& progress) {
  const auto stored = loadSession(path, progress);
  const auto& first = firstOf(*stored);
  ModelFile file = first.file;
  for (const auto& [name, tensor] : first.request.inputs) file.sampleInputs[name] = tensor;
  for (const auto& [name, number] : first.request.numbers) file.sampleNumbers[name] = number;
  return file;
}

}  // namespace retrograd
