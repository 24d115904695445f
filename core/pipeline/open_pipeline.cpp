#include "core/pipeline/open_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/debug/inputs.h"
#include "core/debug/read_model.h"
#include "core/formats/file_kind.h"
#include "core/formats/pt2_structure.h"
#include "core/pipeline/balance.h"
#include "core/pipeline/boundary.h"
#include "core/pipeline/loss.h"
#include "core/pipeline/measure.h"
#include "core/trace/implied.h"

namespace retrograd {
namespace {

ModelFile copyOf(const ModelFile& model) {
  auto copy = model;
  copy.document = std::make_shared<Document>(*model.document);
  return copy;
}

/// Deriving moves what a computation writes in place to memory of its own; a session file keeps it so. As it was read, it follows from the calls.
void restoreStorages(const ModelFile& model) {
  auto& document = *model.document;
  std::vector<char> taken(document.storageCount(), 0);
  const auto take = [&](ValueId id) {
    if (const auto storage = document.value(id).storage) taken[static_cast<std::size_t>(storage.index)] = 1;
  };
  for (auto input : model.computation.trace.inputs)
    if (input) take(input);
  for (auto op : model.computation.trace.ops)
    for (std::size_t i = 0; i < document.outputs(op).size(); ++i) {
      const auto output = std::as_const(document).outputs(op)[i];
      if (!output || !document.isTensor(output)) continue;
      auto& value = document.value(output);
      if (const auto base = implied::base(document, op, i)) value.storage = document.value(base).storage;
      else if (!value.storage || taken[static_cast<std::size_t>(value.storage.index)]) value.storage = document.addStorage(document.meta(value.meta).storageBytes(), output);
      taken.resize(document.storageCount(), 0);
      take(output);
    }
}

/// Printed traces may leave out the types of what ops make.
bool isUntyped(const ModelFile& model) {
  const auto& document = *model.document;
  const auto lacksType = [&](BoundSymbolId op) {
    const auto& symbol = document.symbol(document.boundSymbol(op).symbol);
    const auto outputs = document.outputs(op);
    return symbol.schema.find("Tensor", symbol.schema.rfind("->")) != std::string::npos &&
           std::any_of(outputs.begin(), outputs.end(), [&](ValueId id) { return id && !document.isTensor(id); });
  };
  return model.isText && std::any_of(model.computation.trace.ops.begin(), model.computation.trace.ops.end(), lacksType);
}

std::string errorsOf(const Analysis& analysis) {
  std::string text;
  for (const auto& problem : analysis.problems)
    if (problem.severity == Problem::Severity::error) text += (text.empty() ? "" : "; ") + (problem.place.empty() ? "" : problem.place + ": ") + problem.message;
  return text;
}

/// Says of each user output where it stands in what forward returned.
void nameOutputs(Computation& computation, const std::vector<std::string>& paths) {
  std::vector<OutputSpec*> users;
  for (auto& output : computation.outputs)
    if (output.kind == OutputKind::user || output.kind == OutputKind::loss) users.push_back(&output);
  if (users.size() != paths.size()) return;
  for (std::size_t i = 0; i < users.size(); ++i)
    if (!paths[i].empty()) users[i]->target = paths[i];
}

/// A cotangent of 1 for the loss and none for the rest (P48).
void seedLoss(AnalysisOptions& options, const ModelFile& model, const std::string& loss) {
  const auto& computation = model.computation;
  const auto output = lossOutput(*model.document, computation, loss);
  const auto id = computation.outputs[output].value;
  const auto& meta = model.document->meta(model.document->value(id).meta);
  if (meta.elements() != 1 || !isDifferentiable(meta.dtype))
    throw Error(ErrorCode::badUse, fmt::format("grad can be implicitly created only for scalar outputs; {} is {}", model.document->displayName(id), typeComment(meta)), "loss");
  std::size_t position = 0;
  for (std::size_t i = 0; i < output; ++i) position += computation.outputs[i].kind == OutputKind::user || computation.outputs[i].kind == OutputKind::loss;
  Analysis scratch;
  chooseCotangents(scratch, {}, {{std::to_string(position), meta}});  // the only one, and a scalar: 1
  options.cotangents = std::move(scratch.cotangents);
  options.exactCotangents = true;
}

}  // namespace

CutModel openCut(const std::string& path, const CutRequest& request, const AnalysisOptions& reading, const OptionsFor& optionsFor, bool derive,
                 const Progress& progress) {
  if (request.stages > 0 && !request.at.empty())
    throw Error(ErrorCode::badUse, "Cannot specify both points to cut at and a policy (a number of stages). Please use only one of them.", path);
  CutModel cut;
  cut.model = readModel(path, reading, progress);
  if (isSessionFile(path)) restoreStorages(cut.model);
  const auto& document = *cut.model.document;
  const auto& computation = cut.model.computation;
  try {
    const auto marked = markedCuts(document, computation);
    if (request.stages > 0 && !marked.empty())
      throw Error(ErrorCode::badUse, fmt::format("Cannot specify both: the file has {} stage marker{} of its own, and a policy is asked for. Please use only one of them.", marked.size(),
                                                 marked.size() == 1 ? "" : "s"));
    const bool asks = !request.at.empty() || !request.loss.empty();
    const auto structure = asks && !isSessionFile(path) ? readPt2Structure(path) : std::nullopt;
    if (structure) nameOutputs(cut.model.computation, structure->outputPaths);
    cut.cuts = cutsAt(document, computation, request.at, structure ? structure->moduleCalls : ModuleCalls());
    cut.cuts.insert(cut.cuts.end(), marked.begin(), marked.end());
    std::sort(cut.cuts.begin(), cut.cuts.end());
    const auto deriveWith = [&](const AnalysisOptions& options) {
      cut.whole = analyse(copyOf(cut.model), options, progress);
      if (!cut.whole->derived()) throw Error(ErrorCode::unsupportedOp, "its backward could not be derived: " + errorsOf(*cut.whole));
    };
    if (isUntyped(cut.model)) {  // nothing can be said of its values before it ran
      deriveWith(optionsFor(cut.model));
      completeTypes(cut.model, *cut.whole);
    }
    if (!request.loss.empty() || (!cut.whole && (derive || (request.stages > 1 && request.balance == Balance::time)))) {
      auto options = optionsFor(cut.model);
      if (!request.loss.empty()) seedLoss(options, cut.model, request.loss);
      deriveWith(options);
    }
    if (request.stages > 1) {
      const auto cost = request.balance == Balance::time         ? timeCosts(cut.whole, progress)
                        : request.balance == Balance::parameters ? parameterCosts(document, computation)
                                                                 : byteCosts(document, computation);
      cut.cuts = balancedCuts(document, computation, request.stages, cost);
    }
    cut.split = splitPipeline(document, computation, cut.cuts, request.options);
  } catch (const Error& error) {
    throw error.place().starts_with(path) ? error : error.at(path);
  }
  if (cut.cuts.empty() && request.stages == 0) cut.notes.push_back("no cut is asked for and the file has no stage marker: it is one stage");
  cut.notes.insert(cut.notes.end(), cut.split.notes.begin(), cut.split.notes.end());
  for (const auto& input : unusedInputs(document, computation))
    cut.notes.push_back(fmt::format("input {} is used by no op: at export it may have been one tensor with another input", input));
  for (const auto& parameter : cut.split.unused) cut.notes.push_back(fmt::format("parameter {} is used by no stage", parameter));
  return cut;
}

}  // namespace retrograd
