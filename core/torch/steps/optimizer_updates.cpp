#include "core/torch/steps/optimizer_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/questions/nan_walk.h"
#include "core/torch/session/record_run.h"
#include "core/torch/session/replay.h"
#include "core/torch/steps/update_measures.h"

namespace retrograd {
namespace {

bool isBad(const std::optional<TensorStatistics>& statistics) {
  return statistics && statistics->nan + statistics->inf > 0;
}

/// "3 NaN and 1 infinity among 8 elements".
std::string badNumbers(const TensorStatistics& s) {
  std::string text;
  if (s.nan > 0) text = fmt::format("{} NaN", s.nan);
  if (s.inf > 0)
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ", s.inf, s.inf == 1 ? "infinity" : "infinities");
  return text + fmt::format(" among {} elements", s.elements);
}

/// What made a finite gradient bad between backward and update. Clipping scales all by one norm.
std::string whoChanged(const OptimizerStep& step, const ParameterUpdate& update) {
  if (update.change != ParameterUpdate::Change::clipping)
    return "code between backward and update made its gradient so: " + badNumbers(*update.read);
  const auto other =
      std::ranges::find_if(step.parameters, [](const ParameterUpdate& one) { return isBad(one.gradient); });
  if (other == step.parameters.end())
    return fmt::format("clipping made its gradient so, which was finite (norm {:.3g})", normOfAll(*update.gradient));
  return fmt::format("clipping made its gradient so: the gradient of {} has {}", other->parameter,
                     badNumbers(*other->gradient));
}

std::string whyNotFinite(const OptimizerStep& step, const ParameterUpdate& update) {
  if (isBad(update.weight)) return "the weight had " + badNumbers(*update.weight) + " before it";
  if (isBad(update.read))
    return isBad(update.gradient) ? "its gradient has " + badNumbers(*update.gradient) : whoChanged(step, update);
  if (!update.badBefore.empty()) return fmt::format("{} had NaN or infinities before it", update.badBefore);
  for (const auto& state : update.states) {
    if (state.name == update.zeroRoot)
      return fmt::format(
          "{} NaN or infinities where its second moment ({}) is 0, and epsilon does not keep the "
          "divisor from 0",
          update.update->nan + update.update->inf, state.name);
    if (isBad(state.statistics)) return fmt::format("{} became {}", state.name, badNumbers(state.statistics));
  }
  return "the optimizer's op made it of finite numbers";
}

/// Where the weight's NaN or infinity was made.
BoundSymbolId rootOf(const Analysis& analysis, ValueId weight, const Progress& progress) {
  try {
    return walkToRoot(analysis, recordRun(analysis, {}, progress), weight).root;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    return {};  // an op that cannot run, or a weight that is finite again at the end
  }
}

std::string numberText(double number) { return fmt::format("{:.4g}", number); }

std::string normText(const std::optional<TensorStatistics>& statistics) {
  return statistics ? numberText(normOfAll(*statistics)) : "-";
}

/// A count is shown itself, all else by its norm.
double numberOf(const OptimizerState& state) {
  const auto& s = state.statistics;
  return s.elements == 1 && s.nan + s.inf == 0 ? s.mean : normOfAll(s);
}

std::vector<std::string> stateNames(const OptimizerStep& step) {
  std::vector<std::string> names;
  for (const auto& parameter : step.parameters)
    for (const auto& state : parameter.states)
      if (std::ranges::find(names, state.name) == names.end()) names.push_back(state.name);
  return names;
}

std::vector<std::string> rowText(const ParameterUpdate& update, const std::vector<std::string>& states) {
  const auto optionalText = [](std::optional<double> number) { return number ? numberText(*number) : "-"; };
  std::vector<std::string> row{update.parameter,        normText(update.gradient), optionalText(update.clipFactor()),
                               normText(update.weight), normText(update.update),   optionalText(update.ratio())};
  for (const auto& name : states) {
    const auto found =
        std::ranges::find_if(update.states, [&](const OptimizerState& state) { return state.name == name; });
    row.push_back(found == update.states.end() ? "-" : numberText(numberOf(*found)));
  }
  return row;
}

std::string tableText(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      text += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    text += "\n";
  }
  return text;
}

nlohmann::ordered_json numberJson(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

nlohmann::ordered_json parameterJson(const ParameterUpdate& update) {
  nlohmann::ordered_json json{{"parameter", update.parameter}};
  const auto norm = [&](const char* name, const std::optional<TensorStatistics>& statistics) {
    if (statistics) json[name] = numberJson(normOfAll(*statistics));
  };
  norm("gradient", update.gradient);
  if (const auto factor = update.clipFactor()) json["clip_factor"] = *factor;
  norm("weight", update.weight);
  norm("update", update.update);
  if (const auto ratio = update.ratio()) json["update_over_weight"] = *ratio;
  json["states"] = nlohmann::ordered_json::object();
  for (const auto& state : update.states) json["states"][state.name] = numberJson(numberOf(state));
  return json;
}

}  // namespace

std::optional<double> ParameterUpdate::clipFactor() const {
  if (change == Change::none || !gradient || !read || isBad(gradient) || isBad(read) || gradient->norm == 0) return {};
  return read->norm / gradient->norm;
}

std::optional<double> ParameterUpdate::ratio() const {
  if (!update || !weight || isBad(update) || isBad(weight) || weight->norm == 0) return {};
  return update->norm / weight->norm;
}

double normOfAll(const TensorStatistics& statistics) {
  if (statistics.nan > 0) return std::numeric_limits<double>::quiet_NaN();
  return statistics.inf > 0 ? std::numeric_limits<double>::infinity() : statistics.norm;
}

OptimizerUpdates optimizerUpdates(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  if (!analysis->file.recording)
    throw Error(ErrorCode::badUse, "is not a recording: only what retrograd.record wrote has updates of an optimizer",
                analysis->file.path);
  UpdateMeasures measures(*analysis);
  const auto result = replay(analysis, progress, {&measures});
  auto updates = measures.take();
  updates.incomplete = result.stopped;
  explainFirstBad(*analysis, updates, progress);
  return updates;
}

void explainFirstBad(const Analysis& analysis, OptimizerUpdates& updates, const Progress& progress) {
  for (std::size_t i = 0; i < updates.steps.size(); ++i) {
    const auto& step = updates.steps[i];
    const auto bad =
        std::ranges::find_if(step.parameters, [](const ParameterUpdate& update) { return !update.isFinite(); });
    if (bad == step.parameters.end()) continue;
    BadUpdate found{i, static_cast<std::size_t>(bad - step.parameters.begin()), whyNotFinite(step, *bad), {}, {}};
    found.op = rootOf(analysis, bad->value, progress);
    if (found.op) found.line = recordedLine(*analysis.document, found.op);
    updates.firstBad = std::move(found);
    return;
  }
}

std::string titleOf(const OptimizerUpdates& updates, const OptimizerStep& step) {
  const auto same =
      std::ranges::count_if(updates.steps, [&](const OptimizerStep& one) { return one.step == step.step; });
  return same > 1 ? fmt::format("step {}, backward {}", step.step, step.backward) : fmt::format("step {}", step.step);
}

std::string whySkipped(const OptimizerStep& step) {
  std::string text = "the scaler skipped it: ";
  const auto bad =
      std::ranges::find_if(step.parameters, [](const ParameterUpdate& one) { return isBad(one.gradient); });
  text += bad == step.parameters.end()
              ? "a gradient is not finite"
              : fmt::format("the gradient of {} has {}", bad->parameter, badNumbers(*bad->gradient));
  if (step.scale > 0 && step.scale != 1) text += fmt::format(" at scale {:g}", step.scale);
  if (step.nextScale > 0) text += fmt::format("; the next scale is {:g}", step.nextScale);
  return text;
}

std::string describe(const OptimizerUpdates& updates, const Document& document, const BadUpdate& bad) {
  const auto& step = updates.steps[bad.step];
  auto text = fmt::format("the update of {} in {} is not finite: {}", step.parameters[bad.parameter].parameter,
                          titleOf(updates, step), bad.why);
  if (bad.op) text += fmt::format("; #{} {}", bad.op.index, document.symbol(bad.op).name);
  return bad.line.empty() ? text : text + ", " + bad.line;
}

std::string textOf(const OptimizerUpdates& updates, const Document& document, const std::string& parameter) {
  std::string text;
  for (const auto& step : updates.steps) {
    const auto states = stateNames(step);
    std::vector<std::vector<std::string>> rows{
        {"parameter", "gradient", "clipped by", "weight", "update", "update/weight"}};
    rows[0].insert(rows[0].end(), states.begin(), states.end());
    for (const auto& update : step.parameters)
      if (parameter.empty() || update.parameter == parameter) rows.push_back(rowText(update, states));
    text += fmt::format("{}{}{}\n", text.empty() ? "" : "\n", titleOf(updates, step),
                        step.wasSkipped ? ": " + whySkipped(step) : std::string());
    if (rows.size() > 1) text += tableText(rows);
  }
  if (updates.steps.empty()) text = "no optimizer ran\n";
  if (updates.firstBad) text += describe(updates, document, *updates.firstBad) + "\n";
  if (!updates.incomplete.empty()) text += "incomplete: " + updates.incomplete + "\n";
  return text;
}

nlohmann::ordered_json jsonOf(const OptimizerUpdates& updates, const Document& document, const std::string& parameter) {
  nlohmann::ordered_json json{{"steps", nlohmann::ordered_json::array()}};
  for (const auto& step : updates.steps) {
    nlohmann::ordered_json one{{"step", step.step}, {"backward", step.backward}};
    if (step.wasSkipped) one["skipped"] = whySkipped(step);
    if (step.scale > 0) one["scale"] = numberJson(step.scale);
    one["parameters"] = nlohmann::ordered_json::array();
    for (const auto& update : step.parameters)
      if (parameter.empty() || update.parameter == parameter) one["parameters"].push_back(parameterJson(update));
    json["steps"].push_back(std::move(one));
  }
  if (const auto& bad = updates.firstBad) {
    const auto& step = updates.steps[bad->step];
    json["first_bad"] = {
        {"step", step.step}, {"parameter", step.parameters[bad->parameter].parameter},
        {"why", bad->why},   {"op", bad->op ? nlohmann::ordered_json(bad->op.index) : nlohmann::ordered_json(nullptr)},
        {"line", bad->line}, {"text", describe(updates, document, *bad)}};
  }
  if (!updates.incomplete.empty()) json["incomplete"] = updates.incomplete;
  return json;
}

}  // namespace retrograd
