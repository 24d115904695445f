#include "views/session/value_report.h"

#include <algorithm>

#include "core/derivation/gradient_of.h"
#include "core/stepping/bad_places.h"
#include "core/trace/effects.h"

namespace retrograd::views {
namespace {

/// Names the holes of a call after the schema's arguments: "self", "tensors[1]".
void nameHoles(const Argument& argument, const std::string& name, std::vector<std::string>& labels) {
  if (argument.kind == Argument::Kind::operand) {
    const auto hole = static_cast<std::size_t>(argument.integer);
    if (hole < labels.size() && labels[hole].empty()) labels[hole] = name;
  }
  for (std::size_t i = 0; i < argument.items.size(); ++i)
    nameHoles(argument.items[i], name + "[" + std::to_string(i) + "]", labels);
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

std::vector<ValueRow> valueRows(const Document& document, BoundSymbolId op, bool bothSides) {
  std::vector<ValueRow> rows;
  const auto labels = operandLabels(document, op);
  const auto operands = document.operands(op);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i]) rows.push_back({operands[i], false, false, labels[i], {}, {}, {}});
  for (auto written : bothSides ? writtenOperands(document, op) : std::vector<ValueId>()) {
    const auto operand = std::ranges::find(operands, written);
    if (operand != operands.end())
      rows.push_back({written, false, true, labels[operand - operands.begin()] + ", after", {}, {}, {}});
  }
  const auto outputs = document.outputs(op);
  const auto& returns = document.symbol(op).returns;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    const auto name = i < returns.size() && outputs.size() == returns.size() ? returns[i].name : std::string();
    rows.push_back({outputs[i],
                    true,
                    false,
                    !name.empty()         ? name
                    : outputs.size() == 1 ? "output"
                                          : "output " + std::to_string(i),
                    {},
                    {},
                    {}});
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
  row.absentNow = row.state.present ? std::string() : row.state.reason;
  if (row.state.present && !row.state.number && document.isTensor(value)) row.statistics = runner->statistics(value);
  return row;
}

ValueId besideOf(const Analysis& analysis, ValueId value) {
  if (!value) return {};
  const auto of = valueOfGradient(analysis, value);
  return of ? of : gradientOf(analysis, value);
}

namespace {

using Side = Moment::Side;

Side sideOf(const ValueRow& row) { return row.output || row.after ? Side::after : Side::before; }

void fill(ValueRow& row, const Moment& moment, const Runner& runner, const Document& document) {
  row.state = moment.state(row.value, sideOf(row));
  const auto now = runner.state(row.value);
  row.absentNow = now.present ? std::string() : now.reason;
  if (row.state.present && !row.state.number && document.isTensor(row.value))
    row.statistics = moment.statistics(row.value, sideOf(row));
}

/// Statistics, histogram and elements, where the value is there.
ValueDetail detailOf(const Moment& moment, const ValueRow& row, const Progress& progress) {
  constexpr int bins = 64;
  ValueDetail detail;
  detail.value = row.value;
  detail.after = row.after;
  detail.reason = row.state.reason;
  if (!row.statistics) return detail;
  progress.check();
  detail.statistics = *row.statistics;
  detail.histogram = moment.histogram(row.value, sideOf(row), bins);
  progress.check();
  detail.contents = moment.contents(row.value, sideOf(row));
  const auto bad = static_cast<std::size_t>(detail.statistics.nan + detail.statistics.inf);
  if (bad > 0) detail.badPlaces = describe(badPlaces(detail.contents), bad);
  return detail;
}

}  // namespace

ValueReport reportValues(Runner& runner, const Analysis& analysis, const ValueRequest& request,
                         const Progress& progress) {
  const auto& document = *analysis.document;
  ValueReport report;
  report.op = request.op;
  report.position = runner.position();
  report.rows = valueRows(document, request.op, true);
  const auto moment = runner.at(request.op, progress);
  double done = 0;
  const auto total = static_cast<double>(report.rows.size() + 1);
  for (auto& row : report.rows) {
    progress.at("statistics of " + document.displayName(row.value), done++ / total);
    fill(row, *moment, runner, document);
  }
  const auto chosen = std::ranges::find_if(
      report.rows, [&](const ValueRow& row) { return row.value == request.detail && row.after == request.after; });
  if (chosen == report.rows.end()) return report;
  progress.at("contents of " + document.displayName(chosen->value), done / total);
  report.detail = detailOf(*moment, *chosen, progress);
  if (const auto other = request.beside ? besideOf(analysis, chosen->value) : ValueId()) {
    ValueRow row;
    row.value = other;
    row.output = true;
    const auto made = runner.of(other, progress);
    fill(row, *made, runner, document);
    report.beside = detailOf(*made, row, progress);
  }
  return report;
}

}  // namespace retrograd::views
