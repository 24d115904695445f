#include "views/session/value_report.h"

#include <algorithm>

#include "core/derivation/gradient_of.h"

namespace retrograd::views {
namespace {

/// Names the holes of a call after the schema's arguments: "self", "tensors[1]".
void nameHoles(const Argument& argument, const std::string& name, std::vector<std::string>& labels) {
  if (argument.kind == Argument::Kind::operand) {
    const auto hole = static_cast<std::size_t>(argument.integer);
    if (hole < labels.size() && labels[hole].empty()) labels[hole] = name;
  }
  for (std::size_t i = 0; i < argument.items.size(); ++i) nameHoles(argument.items[i], name + "[" + std::to_string(i) + "]", labels);
}

std::vector<std::string> operandLabels(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto& pattern = document.pattern(bound.pattern);
  const auto& schema = document.symbol(bound.symbol).arguments;
  std::vector<std::string> labels(document.operands(op).size());
  for (std::size_t i = 0; i < pattern.arguments.size(); ++i) {
    const auto name = i < schema.size() ? schema[i].name : i < pattern.names.size() ? pattern.names[i] : std::string();
    nameHoles(pattern.arguments[i], name.empty() ? "operand " + std::to_string(i) : name, labels);
  }
  return labels;
}

}  // namespace

std::vector<ValueRow> valueRows(const Document& document, BoundSymbolId op) {
  std::vector<ValueRow> rows;
  const auto labels = operandLabels(document, op);
  const auto operands = document.operands(op);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i]) rows.push_back({operands[i], false, labels[i], {}, {}});
  const auto outputs = document.outputs(op);
  const auto& returns = document.symbol(document.boundSymbol(op).symbol).returns;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    const auto name = i < returns.size() && outputs.size() == returns.size() ? returns[i].name : std::string();
    rows.push_back({outputs[i], true, !name.empty() ? name : outputs.size() == 1 ? "output" : "output " + std::to_string(i), {}, {}});
  }
  return rows;
}

ValueRow reportValue(const Runner* runner, const Document& document, ValueId value) {
  ValueRow row;
  row.value = value;
  if (!runner) {
    row.state.reason = "the document cannot be run";
    return row;
  }
  row.state = runner->state(value);
  if (row.state.present && !row.state.number && document.isTensor(value)) row.statistics = runner->statistics(value);
  return row;
}

ValueId besideOf(const Analysis& analysis, ValueId value) {
  if (!value) return {};
  const auto of = valueOfGradient(analysis, value);
  return of ? of : gradientOf(analysis, value);
}

namespace {

/// Statistics, histogram and elements, where the value is there.
ValueDetail detailOf(const Runner& runner, const Document& document, ValueId value, const Progress& progress) {
  constexpr int bins = 64;
  ValueDetail detail;
  detail.value = value;
  const auto row = reportValue(&runner, document, value);
  detail.reason = row.state.reason;
  if (!row.statistics) return detail;
  progress.check();
  detail.statistics = *row.statistics;
  detail.histogram = runner.histogram(value, bins);
  progress.check();
  detail.contents = runner.contents(value);
  return detail;
}

}  // namespace

ValueReport reportValues(const Runner& runner, const Analysis& analysis, BoundSymbolId op, ValueId detail, bool beside, const Progress& progress) {
  const auto& document = *analysis.document;
  ValueReport report;
  report.op = op;
  report.position = runner.position();
  report.rows = valueRows(document, op);
  double done = 0;
  const auto total = static_cast<double>(report.rows.size() + 1);
  for (auto& row : report.rows) {
    progress.at("statistics of " + document.displayName(row.value), done++ / total);
    row.state = runner.state(row.value);
    if (row.state.present && !row.state.number && document.isTensor(row.value)) row.statistics = runner.statistics(row.value);
  }
  const bool isShown = std::any_of(report.rows.begin(), report.rows.end(), [&](const ValueRow& row) { return row.value == detail; });
  if (!isShown) return report;
  progress.at("contents of " + document.displayName(detail), done / total);
  report.detail = detailOf(runner, document, detail, progress);
  if (const auto other = beside ? besideOf(analysis, detail) : ValueId()) report.beside = detailOf(runner, document, other, progress);
  return report;
}

}  // namespace retrograd::views
