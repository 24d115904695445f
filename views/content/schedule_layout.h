#pragma once
#include <memory>
#include <vector>

#include "views/stages/schedule_run.h"

namespace retrograd::views {

/// What a rank computes, on the axis of time.
struct ScheduleCell {
  int rank = 0;
  ActionKind kind = ActionKind::forward;  ///< F, B, I or W
  int stage = 0, microbatch = 0;
  double start = 0, end = 0;
  bool overlapped = false;   ///< runs together with the cells of its `position`
  std::size_t position = 0;  ///< in the rank's row
};

/// Time in which a rank waits.
struct ScheduleGap {
  double start = 0, end = 0;
};

/// A simulated schedule as rows of cells over time: what is where, and its neighbours. Knows no pixels. Transfers take
/// no room in it.
class ScheduleLayout {
 public:
  ScheduleLayout() = default;
  /// Of a run that runs.
  explicit ScheduleLayout(std::shared_ptr<const ScheduleRun> run);

  bool empty() const { return cells_.empty(); }
  int ranks() const { return static_cast<int>(gaps_.size()); }
  double makespan() const { return run_ ? run_->simulation.makespan : 0; }
  /// The shortest cell that takes time.
  double shortest() const { return shortest_; }
  bool severalStages() const { return run_ && run_->schedule.stages > ranks(); }
  const ScheduleRun* run() const { return run_.get(); }

  /// All cells, rank by rank, each rank's by time.
  const std::vector<ScheduleCell>& cells() const { return cells_; }
  const ScheduleCell& cell(int index) const { return cells_[index]; }
  /// Indices of a rank's cells: from begin to before end.
  int begin(int rank) const { return first_[rank]; }
  int end(int rank) const { return first_[static_cast<std::size_t>(rank) + 1]; }
  /// The rank's first cell that ends after `time`; end(rank) where none does.
  int firstAfter(int rank, double time) const;
  const std::vector<ScheduleGap>& gaps(int rank) const { return gaps_[rank]; }

  /// The cell at a time; -1 where the rank waits.
  int cellAt(int rank, double time) const;
  /// `steps` cells earlier or later on the same rank, as far as there are some.
  int beside(int cell, int steps) const;
  /// The cell nearest in time on another rank; -1 where there is none.
  int across(int cell, int ranks) const;
  /// "F3" as in the drawing.
  static QString label(const ScheduleCell& cell) { return letter(cell.kind) + QString::number(cell.microbatch); }
  static QChar letter(ActionKind kind);
  /// "rank 1, stage 1: forward of microbatch 3, 4 to 5".
  QString describe(int cell) const;

 private:
  std::shared_ptr<const ScheduleRun> run_;
  std::vector<ScheduleCell> cells_;
  std::vector<int> first_{0};
  std::vector<std::vector<ScheduleGap>> gaps_;
  double shortest_ = 0;
};

}  // namespace retrograd::views
