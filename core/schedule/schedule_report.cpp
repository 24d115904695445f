#include "core/schedule/schedule_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace retrograd {
namespace {

std::vector<std::int32_t> stagesOf(const Schedule& schedule, std::size_t rank) {
  std::vector<std::int32_t> stages;
  for (std::int32_t stage = 0; stage < schedule.stages; ++stage)
    if (schedule.rankOfStage[stage] == static_cast<std::int32_t>(rank)) stages.push_back(stage);
  return stages;
}

/// When a rank starts its last action.
double startOfLast(const std::vector<TimedAction>& actions) {
  auto first = actions.end() - 1;
  while (first != actions.begin() && (first - 1)->position == first->position) --first;
  return first->start;
}

}  // namespace

std::string scheduleText(const Schedule& schedule, const Simulation& run, const ScheduleCosts& costs) {
  const auto unit = costs.unit.empty() ? std::string{} : " " + costs.unit;
  auto out =
      fmt::format("{}: {} ranks, {} stages, {} microbatches\nmakespan {:.6g}{}, bubble {:.1f} %\n\n", schedule.name,
                  schedule.ranks.size(), schedule.stages, schedule.microbatches, run.makespan, unit, 100 * run.bubble);
  bool bytes = false;
  for (const auto& rank : run.ranks) bytes = bytes || rank.peakBytes > 0;
  out += fmt::format("{:>4}  {:>10}  {:>10}  {:>9}{}  stages\n", "rank", "busy", "waiting", "in flight",
                     bytes ? fmt::format("  {:>16}", "activation bytes") : "");
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const auto& line = run.ranks[rank];
    out += fmt::format("{:>4}  {:>10.6g}  {:>10.6g}  {:>9}{}  {}\n", rank, line.busy, run.makespan - line.busy,
                       line.peakInFlight, bytes ? fmt::format("  {:>16}", line.peakBytes) : "",
                       fmt::join(stagesOf(schedule, rank), ", "));
  }
  out += '\n';
  if (!costs.stages.empty()) {
    out += fmt::format("{:>5}  {:>10}  {:>10}  {:>10}  {:>10}  activation bytes\n", "stage", "F", "I", "W", "B");
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
      const auto& cost = costs.stages[s];
      out += fmt::format("{:>5}  {:>10.4g}  {:>10.4g}  {:>10.4g}  {:>10.4g}  {:>16}\n",
                         costs.stages.size() == 1 ? "each" : std::to_string(s), cost.forward, cost.backwardInput,
                         cost.backwardWeight, cost.backward, cost.activationBytes);
    }
    out += '\n';
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    out += fmt::format("{:>4} ", rank);
    for (const auto& action : schedule.ranks[rank]) out += ' ' + text(action);
    out += '\n';
  }
  return out;
}

nlohmann::ordered_json scheduleJson(const Schedule& schedule, const Simulation& run, const ScheduleCosts& costs) {
  using Json = nlohmann::ordered_json;
  Json json{{"schedule", schedule.name}, {"ranks", schedule.ranks.size()},
            {"stages", schedule.stages}, {"microbatches", schedule.microbatches},
            {"makespan", run.makespan},  {"bubble", run.bubble}};
  if (!costs.unit.empty()) json["unit"] = costs.unit;
  for (const auto& cost : costs.stages)
    json["costs"].push_back({{"F", cost.forward},
                             {"I", cost.backwardInput},
                             {"W", cost.backwardWeight},
                             {"B", cost.backward},
                             {"activation_bytes", cost.activationBytes}});
  auto rows = Json::array();
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const auto& timeline = run.ranks[rank];
    auto actions = Json::array();
    for (const auto& timed : timeline.actions) {
      Json entry{{"action", text(timed.action)}, {"start", timed.start}, {"end", timed.end}};
      if (timed.overlapped) entry["overlap"] = timed.position;
      actions.push_back(std::move(entry));
    }
    rows.push_back({{"rank", rank},
                    {"stages", stagesOf(schedule, rank)},
                    {"busy", timeline.busy},
                    {"waiting", run.makespan - timeline.busy},
                    {"peak_in_flight", timeline.peakInFlight},
                    {"peak_activation_bytes", timeline.peakBytes},
                    {"actions", std::move(actions)}});
  }
  json["rows"] = std::move(rows);
  return json;
}

std::string writeSpacedScheduleCsv(const Schedule& schedule) {
  const auto run = simulate(schedule);
  double lastStart = 0;
  for (const auto& rank : run.ranks)
    if (!rank.actions.empty()) lastStart = std::max(lastStart, startOfLast(rank.actions));
  std::string csv;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::vector<std::string> row;
    double free = 0;
    const auto waitUntil = [&](double time) {
      for (; free < time; ++free) row.emplace_back();
    };
    const auto& actions = run.ranks[rank].actions;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const bool begins = i == 0 || actions[i].position != actions[i - 1].position;
      if (begins) {
        waitUntil(actions[i].start);
        row.push_back(text(schedule.ranks[rank][actions[i].position]));
      }
      free = std::max(free, actions[i].end);
    }
    waitUntil(lastStart + 1);
    csv += fmt::format("{}\n", fmt::join(row, ","));
  }
  return csv;
}

}  // namespace retrograd
