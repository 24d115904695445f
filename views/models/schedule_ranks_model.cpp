#include "views/models/schedule_ranks_model.h"

#include <QStringList>
#include <array>

#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, ScheduleRanksModel::columns> rankColumns{
    {{"Rank", "The rank"},
     {"Bubble", "Part of the whole time that it waits", true},
     {"In flight", "Most forwards at one time whose weight gradient was still to come, of all its stages", true},
     {"Peak", "Most bytes that those kept for the backward; not known with equal times", true},
     {"Busy", "Time that it computes", true},
     {"Stages", "Stages that it holds"}}};

}  // namespace

ScheduleRanksModel::ScheduleRanksModel(QObject* parent) : TableModel(rankColumns, parent) {}

void ScheduleRanksModel::show(std::shared_ptr<const ScheduleRun> run) {
  reset([&] { run_ = run && run->runs() ? std::move(run) : nullptr; });
}

QVariant ScheduleRanksModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return alignmentOf(index.column());
  const auto& line = run_->simulation.ranks[index.row()];
  if (role == sortRole) {
    switch (index.column()) {
      case bubble: return -line.busy;
      case peakBytes: return static_cast<double>(line.peakBytes);
      case busy: return line.busy;
      default: return {};
    }
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case rank: return index.row();
    case stages: {
      QStringList all;
      for (std::size_t s = 0; s < run_->schedule.rankOfStage.size(); ++s)
        if (run_->schedule.rankOfStage[s] == index.row()) all << QString::number(s);
      return all.join(QStringLiteral(", "));
    }
    case busy: return run_->timeText(line.busy);
    case bubble:
      return run_->simulation.makespan > 0
                 ? tr("%1 %").arg(100 * (1 - line.busy / run_->simulation.makespan), 0, 'f', 1)
                 : QStringLiteral("\u2013");
    case inFlight: return line.peakInFlight;
    default: return run_->times == StageTimes::equal ? QStringLiteral("\u2013") : bytesText(line.peakBytes);
  }
}

QVariant ScheduleRanksModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::TextAlignmentRole && orientation == Qt::Horizontal && section >= 0 && section < columns)
    return alignmentOf(section);
  return TableModel::headerData(section, orientation, role);
}

}  // namespace retrograd::views
