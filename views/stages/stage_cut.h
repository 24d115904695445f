#pragma once
#include <QString>
#include <memory>
#include <vector>

#include "core/cut/cut_request.h"
#include "core/cut/json.h"
#include "core/cut/loss.h"
#include "core/cut/stage_facts.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// What cutting the open model starts from, whatever the cut: made once a document.
struct CutBench {
  std::shared_ptr<const OpenDocument> document;
  ModelFile model;  ///< as it was read; ids are the document's
  PointNames points;
  ModuleCalls calls;
  std::size_t markers = 0;          ///< stage markers of the file
  std::vector<LossChoice> outputs;  ///< that the model returns
  OpCosts estimated;                ///< from the traces alone
};

/// The open model cut into stages; never changes once published.
struct StageCut {
  std::shared_ptr<const CutBench> bench;
  std::shared_ptr<const OpCosts> measured;  ///< seconds; null while no run has measured them
  CutRequest request;
  Cuts cuts;
  PipelineSplit split;
  std::vector<StageFacts> facts;
  std::vector<StageBorder> borders;
  std::vector<EdgeDescription> edges;  ///< parallel to split.edges
  std::vector<char> gradients;         ///< the same: whether one goes the way back
  std::vector<std::string> notes;
  std::vector<double> load;              ///< by position: what the policy balances, else time
  std::vector<int> stageOfPosition;      ///< by position in the computation's ops; -1: in none
  std::vector<std::int32_t> positionOf;  ///< by bound symbol of the computation, top level; -1 elsewhere

  const OpenDocument& document() const { return *bench->document; }
  const Document& tables() const { return *bench->document->analysis->document; }
  const std::vector<BoundSymbolId>& ops() const { return bench->model.computation.trace.ops; }
  int stages() const { return static_cast<int>(split.stages.size()); }
  const OpCosts& costs() const { return measured ? *measured : bench->estimated; }
  /// The place among the top-level ops of the op of the computation that this one is, is in or comes from; -1 where it
  /// comes from none.
  std::int32_t position(BoundSymbolId op) const;
  /// The stage of any op of any trace; -1 where it is in none.
  int stageOf(BoundSymbolId op) const;
  BoundSymbolId firstOp(int stage) const;
};

/// With an engine it is for the worker. Throws Error(execution) as completeTypes(), Error(badUse) where an engine is
/// needed and none is given.
std::shared_ptr<const CutBench> makeCutBench(std::shared_ptr<const OpenDocument> document, PipelineEngine* engine,
                                             const Progress& progress);
/// Whether makeCutBench() needs an engine for this document.
bool cutNeedsEngine(const OpenDocument& document);

/// Throws Error(badUse) where the model cannot be cut as asked, and Error(needsData) where the policy is time and no
/// run has measured it.
std::shared_ptr<const StageCut> cutStages(std::shared_ptr<const CutBench> bench,
                                          std::shared_ptr<const OpCosts> measured, const CutRequest& request,
                                          const Progress& progress);

/// The request by which exactly these places (positions of ops, ascending) are cut, written as points. Throws
/// Error(badUse) where one has no name.
CutRequest requestFor(const CutBench& bench, const CutRequest& like, const Cuts& places);

}  // namespace retrograd::views
