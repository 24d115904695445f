#include "views/models/schedule_ranks_model.h"

#include <QStringList>
#include <array>

#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

bool isText(int column) { return column == ScheduleRanksModel::rank || column == ScheduleRanksModel::stages; }

}  // namespace

void ScheduleRanksModel::show(std::shared_ptr<const ScheduleRun> run) {
  beginResetModel();
  run_ = run && run->runs() ? std::move(run) : nullptr;
  endResetModel();
}

int ScheduleRanksModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !run_ ? 0 : static_cast<int>(run_->simulation.ranks.size());
}
int ScheduleRanksModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : columns; }

QVariant ScheduleRanksModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(Qt::AlignVCenter | (isText(index.column()) ? Qt::AlignLeft : Qt::AlignRight));
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
  if (orientation != Qt::Horizontal || section < 0 || section >= columns) return {};
  static const std::array<const char*, columns> names{"Rank", "Bubble", "In flight", "Peak", "Busy", "Stages"};
  static const std::array<const char*, columns> tips{
      "The rank",
      "Part of the whole time that it waits",
      "Most forwards at one time whose weight gradient was still to come, of all its stages",
      "Most bytes that those kept for the backward; not known with equal times",
      "Time that it computes",
      "Stages that it holds"};
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(Qt::AlignVCenter | (isText(section) ? Qt::AlignLeft : Qt::AlignRight));
  if (role == Qt::DisplayRole) return tr(names[section]);
  if (role == Qt::ToolTipRole) return tr(tips[section]);
  return {};
}

}  // namespace retrograd::views
