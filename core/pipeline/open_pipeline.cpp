#include "core/pipeline/open_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/debug/inputs.h"
#include "core/debug/read_model.h"
#include "core/formats/file_kind.h"
#include "core/formats/pt2_structure.h"
#include "core/pipeline/as_read.h"
#include "core/pipeline/balance.h"
#include "core/pipeline/boundary.h"
#include "core/pipeline/loss.h"
#include "core/pipeline/measure.h"

namespace retrograd {
namespace {

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

std::shared_ptr<const Analysis> deriveWhole(const ModelFile& model, const std::string& loss, AnalysisOptions options, const Progress& progress) {
  if (!loss.empty()) seedLoss(options, model, loss);
  auto whole = analyse(copyOf(model), options, progress);
  if (!whole->derived()) throw Error(ErrorCode::unsupportedOp, "its backward could not be derived: " + errorsOf(*whole));
  return whole;
}

CutModel openCut(const std::string& path, const CutRequest& request, const AnalysisOptions& reading, const OptionsFor& optionsFor, bool derive,
                 const Progress& progress) {
  try {
    requireOneWay(request);
  } catch (const Error& error) {
    throw error.at(path);
  }
  CutModel cut;
  cut.model = readModel(path, reading, progress);
  if (isSessionFile(path)) restoreStorages(cut.model);
  const auto& document = *cut.model.document;
  const auto& computation = cut.model.computation;
  try {
    const bool asks = !request.at.empty() || !request.loss.empty();
    const auto structure = asks && !isSessionFile(path) ? readPt2Structure(path) : std::nullopt;
    if (structure) nameOutputs(cut.model.computation, structure->outputPaths);
    cut.cuts = pointCuts(cut.model, request, structure ? structure->moduleCalls : ModuleCalls());
    if (isUntyped(cut.model)) {  // nothing can be said of its values before it ran
      cut.whole = deriveWhole(cut.model, {}, optionsFor(cut.model), progress);
      completeTypes(cut.model, *cut.whole);
    }
    if (!request.loss.empty() || (!cut.whole && (derive || (request.stages > 1 && (request.balance == Balance::time || request.balance == Balance::estimate)))))
      cut.whole = deriveWhole(cut.model, request.loss, optionsFor(cut.model), progress);
    if (request.stages > 1) {
      const auto cost = request.balance == Balance::time ? measuredCosts(cut.whole, progress).total() : balanceCosts(cut.model, cut.whole.get(), request.balance);
      cut.cuts = balancedCuts(document, computation, request.stages, cost);
    }
    cut.split = splitPipeline(document, computation, cut.cuts, request.options);
  } catch (const Error& error) {
    throw error.place().starts_with(path) ? error : error.at(path);
  }
  cut.notes = cutNotes(cut.model, request, cut.cuts, cut.split);
  return cut;
}

}  // namespace retrograd
