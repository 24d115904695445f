#pragma once
#include <QAbstractTableModel>
#include <memory>

#include "views/stages/schedule_run.h"

namespace retrograd::views {

/// The ranks of a simulated schedule, a row each: what it computes, how long it waits, what it holds at most.
class ScheduleRanksModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { rank, bubble, inFlight, peakBytes, busy, stages, columns };

  using QAbstractTableModel::QAbstractTableModel;

  /// Null, or a run that does not run, shows nothing.
  void show(std::shared_ptr<const ScheduleRun> run);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::shared_ptr<const ScheduleRun> run_;
};

}  // namespace retrograd::views
