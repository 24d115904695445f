#include "views/stages/stage_cut.h"

#include <algorithm>

#include "core/cut/as_read.h"
#include "core/cut/balance.h"
#include "core/formats/read/pt2_structure.h"
#include "views/engine/pipeline_engine.h"

namespace retrograd::views {
namespace {

/// Which call of its modules an op belongs to, and where outputs are, where the file still says so.
Pt2Structure structureOf(const ModelFile& file) {
  try {
    if (file.format != Format::model) return {};
    auto structure = readPt2Structure(file.path);
    return structure ? std::move(*structure) : Pt2Structure();
  } catch (const Error&) {
    return {};  // gone or rewritten since it was opened: calls follow from the order of ops
  }
}

}  // namespace

std::int32_t StageCut::position(BoundSymbolId op) const {
  const auto& tables = this->tables();
  if (op)
    if (const auto origin = OriginLinks::origin(tables, op)) op = origin;
  while (op) {
    const auto index = static_cast<std::size_t>(op.index);
    if (index < positionOf.size() && positionOf[index] >= 0) return positionOf[index];
    op = tables.boundSymbol(op).parent;
  }
  return -1;
}

int StageCut::stageOf(BoundSymbolId op) const {
  const auto at = position(op);
  return at < 0 ? -1 : stageOfPosition[at];
}

BoundSymbolId StageCut::firstOp(int stage) const {
  if (stage < 0 || stage >= stages()) return {};
  const auto& ops = split.stages[stage].ops;
  return ops.empty() ? BoundSymbolId() : ops.front();
}

bool cutNeedsEngine(const OpenDocument& document) { return isUntyped(document.analysis->file); }

std::shared_ptr<const CutBench> makeCutBench(std::shared_ptr<const OpenDocument> document, PipelineEngine* engine,
                                             const Progress& progress) {
  auto bench = std::make_shared<CutBench>();
  const auto& analysis = *document->analysis;
  bench->model = asRead(analysis);
  progress.check();
  if (isUntyped(bench->model)) {
    if (!engine)
      throw Error(ErrorCode::badUse, "its ops have no types, which takes a run to find, and nothing here can run it",
                  document->request.path);
    engine->completeTypes(bench->model, analysis);
  }
  bench->points = PointNames(*bench->model.document, bench->model.computation);
  auto structure = structureOf(document->analysis->file);
  bench->calls = std::move(structure.moduleCalls);
  auto computation = bench->model.computation;
  nameOutputs(computation, structure.outputPaths);
  bench->outputs = lossChoices(*bench->model.document, computation);
  progress.check();
  const auto& ops = bench->model.computation.trace.ops;
  bench->markers = static_cast<std::size_t>(std::count_if(
      ops.begin(), ops.end(), [&](BoundSymbolId op) { return isStageMarker(*bench->model.document, op); }));
  bench->estimated = estimatedCosts(analysis);
  bench->document = std::move(document);
  return bench;
}

std::shared_ptr<const StageCut> cutStages(std::shared_ptr<const CutBench> bench,
                                          std::shared_ptr<const OpCosts> measured, const CutRequest& request,
                                          const Progress& progress) {
  auto cut = std::make_shared<StageCut>();
  cut->request = request;
  const auto& model = bench->model;
  const auto& tables = *model.document;
  const auto& whole = *bench->document->analysis;
  cut->cuts = pointCuts(model, request, bench->calls);
  const bool needsRun = request.stages > 1 && request.balance == Balance::time;
  if (needsRun && !measured) throw Error(ErrorCode::needsData, "no run has measured the ops yet");
  const bool isTime = request.stages < 2 || request.balance == Balance::time || request.balance == Balance::estimate;
  cut->load = !isTime                                            ? balanceCosts(model, &whole, request.balance)
              : measured && request.balance != Balance::estimate ? measured->total()
                                                                 : bench->estimated.total();
  if (request.stages > 1) cut->cuts = balancedCuts(tables, model.computation, request.stages, cut->load);
  progress.check();
  cut->split = splitPipeline(tables, model.computation, cut->cuts, request.options);
  cut->bench = bench;
  cut->measured = std::move(measured);
  progress.check();
  cut->facts = stageFacts(whole, model, cut->split, cut->costs());
  cut->borders = stageBorders(whole, model, cut->split);
  for (const auto& edge : cut->split.edges) cut->edges.push_back(describeEdge(model, edge));
  cut->gradients = gradientEdges(whole, cut->split);
  cut->notes = cutNotes(model, request, cut->cuts, cut->split);
  cut->stageOfPosition = stageOfOps(model.computation, cut->split);
  const auto& ops = model.computation.trace.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto index = static_cast<std::size_t>(ops[i].index);
    if (index >= cut->positionOf.size()) cut->positionOf.resize(index + 1, -1);
    cut->positionOf[index] = static_cast<std::int32_t>(i);
  }
  return cut;
}

CutRequest requestFor(const CutBench& bench, const CutRequest& like, const Cuts& places) {
  auto request = like;
  request.stages = 0;
  request.useMarkers = bench.markers == 0;
  request.at.clear();
  for (auto place : places) request.at.push_back(bench.points.at(place));
  return request;
}

}  // namespace retrograd::views
