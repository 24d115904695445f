#include "views/content/schedule_layout.h"

#include <algorithm>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString meaning(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward: return tr("forward");
    case ActionKind::backwardInput: return tr("gradients of inputs");
    case ActionKind::backwardWeight: return tr("gradients of weights");
    default: return tr("backward");
  }
}

}  // namespace

ScheduleLayout::ScheduleLayout(std::shared_ptr<const ScheduleRun> run) : run_(std::move(run)) {
  const auto& simulation = run_->simulation;
  shortest_ = simulation.makespan;
  for (std::size_t rank = 0; rank < simulation.ranks.size(); ++rank) {
    auto& gaps = gaps_.emplace_back();
    double free = 0;
    for (const auto& timed : simulation.ranks[rank].actions) {
      if (!computes(timed.action.kind)) continue;
      if (timed.start > free) gaps.push_back({free, timed.start});
      if (timed.end > timed.start) shortest_ = std::min(shortest_, timed.end - timed.start);
      const auto& [kind, stage, microbatch, parts] = timed.action;
      cells_.push_back(
          {static_cast<int>(rank), kind, stage, microbatch, timed.start, timed.end, timed.overlapped, timed.position});
      free = std::max(free, timed.end);
    }
    if (simulation.makespan > free) gaps.push_back({free, simulation.makespan});
    first_.push_back(static_cast<int>(cells_.size()));
  }
}

int ScheduleLayout::firstAfter(int rank, double time) const {
  const auto from = cells_.begin() + begin(rank), to = cells_.begin() + end(rank);
  return static_cast<int>(
      std::partition_point(from, to, [time](const ScheduleCell& cell) { return cell.end <= time; }) - cells_.begin());
}

int ScheduleLayout::cellAt(int rank, double time) const {
  if (rank < 0 || rank >= ranks() || time < 0) return -1;
  const auto found = firstAfter(rank, time);
  return found < end(rank) && cell(found).start <= time ? found : -1;
}

int ScheduleLayout::beside(int cell, int steps) const {
  const auto rank = this->cell(cell).rank;
  return std::clamp(cell + steps, begin(rank), end(rank) - 1);
}

int ScheduleLayout::across(int cell, int ranks) const {
  const auto rank = this->cell(cell).rank + ranks;
  if (rank < 0 || rank >= this->ranks() || begin(rank) == end(rank)) return -1;
  const auto middle = (this->cell(cell).start + this->cell(cell).end) / 2;
  const auto after = std::min(firstAfter(rank, middle), end(rank) - 1);
  if (after == begin(rank)) return after;
  return this->cell(after).start - middle > middle - this->cell(after - 1).end ? after - 1 : after;
}

QChar ScheduleLayout::letter(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward: return QLatin1Char('F');
    case ActionKind::backwardInput: return QLatin1Char('I');
    case ActionKind::backwardWeight: return QLatin1Char('W');
    default: return QLatin1Char('B');
  }
}

QString ScheduleLayout::describe(int index) const {
  const auto& cell = this->cell(index);
  auto text = tr("Rank %1, stage %2: %3 of microbatch %4")
                  .arg(cell.rank)
                  .arg(cell.stage)
                  .arg(meaning(cell.kind))
                  .arg(cell.microbatch);
  text += tr(" (%1), from %2 to %3").arg(letter(cell.kind)).arg(run_->timeText(cell.start), run_->timeText(cell.end));
  return cell.overlapped ? text + tr(", in an overlap") : text;
}

}  // namespace retrograd::views
