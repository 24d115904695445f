#pragma once
#include <QObject>
#include <QUndoStack>

#include "views/engine/pool_job.h"
#include "views/stages/stage_cut.h"

namespace retrograd::views {

/// How the open model is cut into pipeline stages: one for all views of a window, which subscribe and never call each
/// other. Cuts are changed by requests, each of which can be undone; cutting goes on off the UI thread. Nothing is
/// done before begin() or the first request, unless the file brings stage markers.
class StagePlan : public QObject {
  Q_OBJECT

 public:
  explicit StagePlan(DocumentController* controller);

  /// Null while nothing is cut: not begun, or refused.
  const std::shared_ptr<const StageCut>& cut() const { return cut_; }
  /// The stage that a mark next to an op is for; -1 where there are no marks: a model in one piece has none.
  int mark(BoundSymbolId op) const { return hasMarks() ? cut_->stageOf(op) : -1; }
  bool hasMarks() const { return cut_ && cut_->stages() > 1; }
  const CutRequest& request() const { return request_; }
  /// Stage markers of the file, as far as they are known.
  std::size_t markers() const { return bench_ ? bench_->markers : 0; }
  /// The model's return value, as far as it is known.
  const std::vector<LossChoice>& outputs() const;
  /// Why the request was refused, or why a change of one cut was taken back; empty where all is well.
  const QString& problem() const { return problem_; }
  BoundSymbolId problemOp() const { return problemOp_; }
  bool busy() const { return busy_; }
  const QUndoStack& history() const { return history_; }
  void undo();
  void redo();

  /// Cuts as requested so far, if that was not done yet.
  void begin();
  /// Cuts again. `what` names the change in the history.
  void change(const CutRequest& request, const QString& what);
  /// The file's markers alone, as at first; how parameters are shared stays.
  void clear();
  bool isClear() const;
  /// How these parameters, which several stages use, reach them; the others stay as they are. Refused as a change of
  /// one cut.
  void share(const std::vector<SharedParameter>& parameters, MultiUse use);
  /// The same for all, those included that later cuts let several stages use.
  void shareAll(MultiUse use);
  /// Opens the file again with the gradient beginning at this output (LossChoice::place), or at all for an empty text.
  /// It is the joint's as well as the stages', which are cut of it. Where the output cannot be a loss, problem() says
  /// why, and nothing is done.
  void chooseLoss(const std::string& place);
  /// The output that is the loss now; an index into outputs(), -1 for all.
  int loss() const;

  /// What was asked for, to be asked for again by restore(): where times were measured for it, the places that they led
  /// to. None where nothing was asked for, or it was refused.
  std::optional<CutRequest> kept() const;
  /// Cuts as at another time; no step of the history.
  void restore(const CutRequest& request);

  /// Changes one cut, and leaves all as it was where that is refused. The origin of ops says where they are.
  void cutBefore(BoundSymbolId op) { cutAt(op, false); }
  void cutAfter(BoundSymbolId op) { cutAt(op, true); }
  /// At each call of a module, by its path: before it, or behind it.
  void cutAtModule(const std::string& module, bool after);
  /// Joins the stage that the op is in to the one before.
  void removeCut(BoundSymbolId op);
  /// Lets `stage` begin at another position of the computation's ops.
  void moveCut(int stage, std::size_t position);
  bool canMoveCut(int stage, std::size_t position) const;
  /// Why the op can be cut at, or its cut be removed; empty where it can.
  QString noCutReason(BoundSymbolId op, bool after) const;
  QString noCutReason(const std::string& module, bool after) const;
  QString noRemoveReason(BoundSymbolId op) const;

  /// Runs forward and backward twice to measure what ops take.
  void measure();
  bool measured() const { return measured_ != nullptr; }
  bool measuring() const { return measuring_; }

 Q_SIGNALS:
  /// Cut, request, problem or what goes on has changed.
  void changed();

 private:
  class Change;
  struct Outcome;

  void documentChanged();
  void setRequest(const CutRequest& request);
  void cutAnew();
  void prepare();
  void deliver(const Outcome& outcome);
  void fail(const QString& problem, BoundSymbolId op = {});
  void tell(const QString& problem, BoundSymbolId op);
  /// Where stages begin, the first left out.
  Cuts places() const;
  void changePlaces(const Cuts& places, const QString& what);
  void changeCut(const CutRequest& request, const QString& what);
  void cutAt(BoundSymbolId op, bool after);
  /// Why no change of one cut can begin now, whatever the cut; empty where one can.
  QString noChangeReason() const;
  /// Places at which the cut of a point would add a stage. Throws as cutsAt().
  Cuts placesOf(const std::string& point) const;

  DocumentController* controller_;
  QUndoStack& history_;  ///< of the document
  CutRequest request_;
  std::shared_ptr<const CutBench> bench_;
  std::shared_ptr<const OpCosts> measured_;
  std::shared_ptr<const StageCut> cut_;
  PoolJob job_;
  QString problem_, path_;
  BoundSymbolId problemOp_;
  bool begun_ = false, busy_ = false, measuring_ = false;
  std::function<void()> then_;  ///< what waits for the first cut
  bool tentative_ = false;      ///< the newest change is of one cut: taken back where it is refused
  Change* newest_ = nullptr;    ///< that change; the history has it
};

}  // namespace retrograd::views
