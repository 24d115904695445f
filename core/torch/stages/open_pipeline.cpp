#include "core/torch/stages/open_pipeline.h"

#include <algorithm>
#include <utility>

#include "core/cut/as_read.h"
#include "core/cut/balance.h"
#include "core/cut/loss.h"
#include "core/formats/read/pt2_structure.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/reading/read_model.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/stages/boundary.h"
#include "core/torch/stages/stage_costs.h"

namespace retrograd {
namespace {

/// A name that is mistyped would leave its parameter as it is, without a word.
void requireParameters(const Computation& computation, const std::map<std::string, MultiUse>& uses) {
  for (const auto& [name, use] : uses) {
    const bool isKnown = std::ranges::any_of(computation.inputs, [&](const InputSpec& input) {
      return input.kind == InputKind::parameter &&
             (input.target == name || std::ranges::find(input.aliases, name) != input.aliases.end());
    });
    if (!isKnown)
      throw Error(ErrorCode::badUse,
                  "the model has no such parameter; `pipeline split` lists those that several stages use",
                  "parameter " + name);
  }
}

}  // namespace

void seedLoss(DerivationRequest& options, const Document& document, const Computation& computation,
              const std::string& loss) {
  const auto output = lossOutput(document, computation, loss);
  requireScalarLoss(document, computation, output);
  std::size_t position = 0;
  for (std::size_t i = 0; i < output; ++i)
    position += computation.outputs[i].kind == OutputKind::user || computation.outputs[i].kind == OutputKind::loss;
  const auto& meta = document.meta(computation.outputs[output].value);
  Analysis scratch;
  chooseCotangents(scratch, {}, {{std::to_string(position), meta}});  // the only one, and a scalar: 1
  options.cotangents = std::move(scratch.request.cotangents);
  options.exactCotangents = true;
}

std::shared_ptr<const Analysis> analyseForLoss(ModelFile file, const std::string& path, const std::string& loss,
                                               DerivationRequest options, const Progress& progress) {
  if (!loss.empty()) {
    if (isUntyped(file))
      completeTypes(file, *deriveWhole(file, {}, options, progress));  // only a run shows whether it is a scalar
    auto named = file.computation;
    if (const auto structure = readPt2Structure(path)) nameOutputs(named, structure->outputPaths);
    seedLoss(options, *file.document, named, loss);
  }
  return analyse(std::move(file), options, progress);
}

std::shared_ptr<const Analysis> deriveWhole(const ModelFile& model, const std::string& loss, DerivationRequest options,
                                            const Progress& progress) {
  if (!loss.empty()) seedLoss(options, *model.document, model.computation, loss);
  auto whole = analyse(copyOf(model), options, progress);
  if (!whole->derived())
    throw Error(ErrorCode::unsupportedOp, "its backward could not be derived: " + errorsOf(whole->problems));
  return whole;
}

CutModel openCut(const std::string& path, const CutRequest& request, const DerivationRequest& reading,
                 const RequestFor& requestFor, bool derive, const Progress& progress) {
  try {
    requireOneWay(request);
  } catch (const Error& error) {
    throw error.at(path);
  }
  CutModel cut{.model = readModel(path, reading, progress)};
  const bool isSession = cut.model.format == Format::session;
  if (isSession) restoreStorages(cut.model);
  const auto& document = *cut.model.document;
  const auto& computation = cut.model.computation;
  try {
    const bool asks = !request.at.empty() || !request.loss.empty();
    const auto structure = asks && !isSession ? readPt2Structure(path) : std::nullopt;
    if (structure) nameOutputs(cut.model.computation, structure->outputPaths);
    cut.cuts = pointCuts(cut.model, request, structure ? structure->moduleCalls : ModuleCalls());
    if (isUntyped(cut.model)) {  // nothing can be said of its values before it ran
      cut.whole = deriveWhole(cut.model, {}, requestFor(cut.model), progress);
      completeTypes(cut.model, *cut.whole);
    }
    if (!request.loss.empty() ||
        (!cut.whole && (derive || (request.stages > 1 &&
                                   (request.balance == Balance::time || request.balance == Balance::estimate)))))
      cut.whole = deriveWhole(cut.model, request.loss, requestFor(cut.model), progress);
    if (request.stages > 1) {
      const auto cost = request.balance == Balance::time ? measuredCosts(cut.whole, progress).total()
                                                         : balanceCosts(cut.model, cut.whole.get(), request.balance);
      cut.cuts = balancedCuts(document, computation, request.stages, cost);
    }
    requireParameters(computation, request.options.multiUseOf);
    cut.split = splitPipeline(document, computation, cut.cuts, request.options);
  } catch (const Error& error) {
    throw error.place().starts_with(path) ? error : error.at(path);
  }
  cut.notes = cutNotes(cut.model, request, cut.cuts, cut.split);
  return cut;
}

}  // namespace retrograd
