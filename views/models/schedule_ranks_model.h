#pragma once
#include <memory>

#include "views/models/table_model.h"
#include "views/stages/schedule_run.h"

namespace retrograd::views {

/// The ranks of a simulated schedule, a row each: what it computes, how long it waits, what it holds at most.
class ScheduleRanksModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { rank, bubble, inFlight, peakBytes, busy, stages, columns };

  explicit ScheduleRanksModel(QObject* parent = nullptr);

  /// Null, or a run that does not run, shows nothing.
  void show(std::shared_ptr<const ScheduleRun> run);

  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::size_t rows() const override { return run_ ? run_->simulation.ranks.size() : 0; }
  std::shared_ptr<const ScheduleRun> run_;
};

}  // namespace retrograd::views
