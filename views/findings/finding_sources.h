#pragma once
#include <QObject>
#include <QTimer>

#include "core/torch/experiments/compare_runs.h"
#include "core/torch/experiments/grad_check.h"
#include "views/engine/pool_job.h"
#include "views/findings/finding_board.h"
#include "views/session/view_context.h"

namespace retrograd::views {

/// Brings what is found without being asked for: NaN and Inf of what ran, gradients that are None, layers that differ
/// from their equals, faults and cuts of a recorded step.
class FindingSources : public QObject {
  Q_OBJECT

 public:
  explicit FindingSources(ViewContext context, QObject* parent = nullptr);

  /// The name on the board of the check of a recorded step.
  static QString ofStep() { return QStringLiteral("step"); }

 private:
  void lookAtRun();
  void findRoot();
  void lookAtGradients();
  void lookAtLayers();
  void lookAtStep();

  const ViewContext context_;
  FindingBoard& board_;
  PoolJob gradients_, layers_;
  std::shared_ptr<const Analysis> judged_;   ///< the recorded step that was asked about
  std::shared_ptr<const Analysis> checked_;  ///< the recorded step whose check says more of a NaN than the run does
  std::shared_ptr<const Analysis> walked_;   ///< whose NaN was walked from
  QTimer soon_;                              ///< a run changes its numbers thirty times a second
};

/// What a gradient check says of a range of ops, as `range` names it: each gradient that is wrong, each backward that
/// the file lacks, or that all is right.
std::vector<Claim> findingsOf(const GradientCheck& check, const std::string& range, BoundSymbolId first);
/// Where two runs diverge first; that they agree where they do. `other`: what it was compared with, for people.
std::vector<Claim> findingsOf(const Document& document, const RunComparison& comparison, const std::string& other);

}  // namespace retrograd::views
