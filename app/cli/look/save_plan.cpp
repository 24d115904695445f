#include "app/cli/look/save_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "app/cli/parsing/options.h"
#include "core/base/enum_array.h"
#include "core/formats/jobs/save_plan.h"
#include "core/torch/experiments/what_if.h"

namespace retrograd::cli {
namespace {

using Json = nlohmann::ordered_json;
using jobs::GraphKind;

jobs::GraphChoice firstWithBackward(const jobs::JobLog& log, std::optional<std::int64_t> rank) {
  for (const auto& process : log.processes) {
    if (rank && process.rank != rank) continue;
    for (const auto& compile : process.compiles)
      for (auto attempt = compile.attempts.rbegin(); attempt != compile.attempts.rend(); ++attempt)
        if (attempt->find(GraphKind::forward) != nullptr && attempt->find(GraphKind::backward) != nullptr)
          return {&process, &compile, &*attempt};
  }
  return jobs::chooseCompile(log, {}, rank);
}

/// Lines of cells below one another, with headings between them.
class TextTable {
 public:
  using Cells = std::vector<std::string>;
  explicit TextTable(Cells head) : widths_(head.size()) { add({}, std::move(head)); }
  void add(std::string heading, Cells cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], cells[i].size());
    lines_.emplace_back(std::move(heading), std::move(cells));
  }
  void print() const {
    std::string last;
    for (const auto& [heading, cells] : lines_) {
      if (heading != last) fmt::print("{}:\n", heading);
      last = heading;
      std::string text;
      for (std::size_t i = 0; i < cells.size(); ++i)
        text +=
            isRight(i) ? fmt::format("  {:>{}}", cells[i], widths_[i]) : fmt::format("  {:<{}}", cells[i], widths_[i]);
      text.erase(text.find_last_not_of(' ') + 1);
      fmt::print("{}\n", text);
    }
  }

 private:
  bool isRight(std::size_t column) const { return lines_.front().second[column] == "bytes"; }

  std::vector<std::size_t> widths_;
  std::vector<std::pair<std::string, Cells>> lines_;
};

/// `wanted`: which values. With fates, the column says what happened to each.
template <class Wanted>
void printTable(const SavePlan& plan, const PlanTable& table, bool withFate, Wanted wanted) {
  TextTable text(withFate ? TextTable::Cells{"value", "type", "bytes", "op", "policy", "in fact", "line"}
                          : TextTable::Cells{"value", "type", "bytes", "op", "policy", "line"});
  bool hasLayers = false;
  for (const auto& row : table.rows) {
    const auto& value = table.values[row.values.front()];
    if (!wanted(value)) continue;
    hasLayers |= !row.layers.empty();
    TextTable::Cells cells{nameText(plan, value), typeText(value), value.bytes ? std::to_string(*value.bytes) : "?",
                           opText(value), value.policy};
    if (withFate) cells.emplace_back(name(value.fate));
    cells.push_back((value.line > 0 ? fmt::format("{}:{}", value.file, value.line) : "") +
                    (value.viewOf.empty() ? "" : "  view of " + value.viewOf));
    text.add(row.layers.empty() && !hasLayers ? "" : headingText(plan, row.layers), std::move(cells));
  }
  text.print();
}

std::string totalText(const PlanTotal& total) {
  return fmt::format("{:>12} bytes in {} value{}{}", total.bytes, total.values, total.values == 1 ? "" : "s",
                     total.unknown == 0 ? "" : fmt::format(", and {} of unknown size", total.unknown));
}

/// Retrograd's own split of the job's model, from the fewest bytes that can be saved to those that its formulas ask
/// for.
std::vector<BudgetFigures> figuresAt(const SavePlanOptions& options, const jobs::GraphChoice& choice,
                                     const std::string& path, const Progress& progress) {
  if (options.budgets == 0) return {};
  InputOptions opening;
  opening.data.compile = fmt::format("{}_{}", nameOf(*choice.compile), choice.attempt->number);
  opening.data.rank = choice.process->rank;
  const auto analysis = open(path, opening, progress);
  return figuresAtBudgets(options.budgets, [&](const PartitionOptions& partition) {
    return whatIf(*analysis, partition, {}, progress).after;
  });
}

void printBudgets(const std::vector<BudgetFigures>& budgets) {
  if (budgets.empty()) return;
  fmt::print("\nRetrograd's own split at several budgets\n{:>14} {:>14} {:>14} {:>16}\n", "budget", "saved bytes",
             "peak bytes", "recomputed ops");
  for (const auto& [budget, figures] : budgets)
    fmt::print("{:>14} {:>14} {:>14} {:>16}\n", budget, figures.savedBytes, figures.peakBytes, figures.recomputedOps);
}

void printLayers(const SavePlan& plan) {
  for (std::size_t i = 0; i < plan.layers.size();) {
    std::vector<std::size_t> group;
    const auto first = plan.layers[i];
    for (; i < plan.layers.size() && plan.layers[i].group == first.group; ++i) group.push_back(i);
    fmt::print("{}: equal, {} ops each\n", layersText(plan, group), first.ops);
  }
}

void printText(const SavePlan& plan, const jobs::GraphChoice& choice, const std::vector<BudgetFigures>& budgets,
               bool withNodes) {
  const auto rank = choice.process->rank ? fmt::format("  rank {}", *choice.process->rank) : std::string();
  fmt::print("compile {}  attempt {}{}\n", nameOf(*choice.compile), choice.attempt->number, rank);
  printLayers(plan);
  fmt::print("\nsaved for the backward\n");
  printTable(plan, plan.residuals, false, [](const PlanValue& value) { return !value.isInput; });
  fmt::print("\nparameters and inputs that the backward reads, in memory anyway\n");
  printTable(plan, plan.residuals, false, [](const PlanValue& value) { return value.isInput; });
  if (withNodes) fmt::print("\nevery tensor of the forward\n");
  if (withNodes) printTable(plan, plan.computed, true, [](const PlanValue&) { return true; });
  fmt::print("\nsaved      {}\n", totalText(plan.saved));
  fmt::print("all saved  {}\n", plan.allSaved ? totalText(*plan.allSaved) : "not known: the log has no joint graph");
  fmt::print("inputs     {}\n", totalText(plan.inputs));
  fmt::print("\n{:<20} {:>8} {:>12} {:>12}\n", "policy", "saved", "recomputed", "not needed");
  for (const auto& count : plan.policies)
    fmt::print("{:<20} {:>8} {:>12} {:>12}\n", count.policy.empty() ? "none" : count.policy, count.saved,
               count.recomputed, count.unused);
  printBudgets(budgets);
  const auto notes = notesOf(plan), findings = findingsOf(plan);
  if (!notes.empty() || !findings.empty()) fmt::print("\n");
  for (const auto& note : notes) fmt::print("note: {}\n", note);
  for (const auto& finding : findings) fmt::print("finding: {}\n", finding);
}

Json orNull(const std::optional<std::int64_t>& number) { return number ? Json(*number) : Json(); }

Json jsonOf(const PlanValue& value) {
  Json json{
      {"name", value.name},     {"dtype", value.dtype},     {"sizes", value.sizes},     {"bytes", orNull(value.bytes)},
      {"op", value.op},         {"policy", value.policy},   {"fate", name(value.fate)}, {"input", value.isInput},
      {"viewOf", value.viewOf}, {"program", value.program}, {"file", value.file},       {"line", value.line},
      {"code", value.code}};
  json["layer"] = value.layer ? Json(*value.layer) : Json();
  return json;
}

Json jsonOf(const PlanTable& table) {
  Json json{{"values", Json::array()}, {"rows", Json::array()}};
  for (const auto& value : table.values) json["values"].push_back(jsonOf(value));
  for (const auto& row : table.rows) json["rows"].push_back({{"layers", row.layers}, {"values", row.values}});
  return json;
}

Json jsonOf(const PlanTotal& total) {
  return {{"values", total.values}, {"bytes", total.bytes}, {"unknown", total.unknown}};
}

Json jsonOf(const PlanTreatment& treatment) {
  return {{"layers", treatment.layers},
          {"value", treatment.value},
          {"fate", name(treatment.fate)},
          {"policy", treatment.policy},
          {"jointPolicy", treatment.jointPolicy}};
}

std::string_view reasonText(PlanDifference::Reason reason) {
  static constexpr EnumArray<PlanDifference::Reason, std::string_view, 5> texts{"", "last layer", "region reads",
                                                                                "no region reads", "in memory"};
  return texts[reason];
}

Json jsonOf(const SavePlan& plan, const jobs::GraphChoice& choice, const std::string& path, bool withNodes) {
  Json json{{"path", path},
            {"compile", nameOf(*choice.compile)},
            {"attempt", choice.attempt->number},
            {"rank", orNull(choice.process->rank)},
            {"layers", Json::array()},
            {"residuals", jsonOf(plan.residuals)},
            {"saved", jsonOf(plan.saved)},
            {"inputs", jsonOf(plan.inputs)},
            {"allSaved", plan.allSaved ? jsonOf(*plan.allSaved) : Json()},
            {"policies", Json::array()},
            {"differences", Json::array()},
            {"notes", notesOf(plan)},
            {"findings", findingsOf(plan)}};
  for (const auto& layer : plan.layers)
    json["layers"].push_back({{"group", layer.group},
                              {"number", layer.number},
                              {"ops", layer.ops},
                              {"savedBytes", layer.savedBytes},
                              {"module", layer.module}});
  if (withNodes) json["computed"] = jsonOf(plan.computed);
  for (const auto& count : plan.policies)
    json["policies"].push_back(
        {{"policy", count.policy}, {"saved", count.saved}, {"recomputed", count.recomputed}, {"unused", count.unused}});
  for (const auto& difference : plan.differences)
    json["differences"].push_back({{"odd", jsonOf(difference.odd)},
                                   {"others", jsonOf(difference.others)},
                                   {"op", difference.op},
                                   {"type", difference.type},
                                   {"bytes", orNull(difference.bytes)},
                                   {"file", difference.file},
                                   {"line", difference.line},
                                   {"reason", reasonText(difference.reason)}});
  return json;
}

}  // namespace

void printSavePlan(const jobs::JobLog& log, const SavePlanOptions& options, const Progress& progress) {
  const auto choice = options.compile.empty() ? firstWithBackward(log, options.rank)
                                              : jobs::chooseCompile(log, options.compile, options.rank);
  const auto plan = savePlanOf(readUnpairedGraphs(log, *choice.attempt));
  const auto budgets = figuresAt(options, choice, log.path, progress);
  if (options.format != "json") {
    printText(plan, choice, budgets, options.withNodes);
    return;
  }
  auto json = jsonOf(plan, choice, log.path, options.withNodes);
  for (const auto& [budget, figures] : budgets)
    json["budgets"].push_back({{"budget", budget},
                               {"saved", figures.savedBytes},
                               {"peak", figures.peakBytes},
                               {"recomputedOps", figures.recomputedOps}});
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace retrograd::cli
