#include "views/numbers/gradient_flow_model.h"

#include <array>
#include <cmath>

#include "core/derivation/gradient_of.h"
#include "core/questions/parameter_tree.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

/// A parameter's numbers, and the NaN and Inf in its gradient.
std::pair<GradientFlowChart::Bar, std::int64_t> measured(const GradientFlowModel::Row& row, const RunNumbers& numbers) {
  GradientFlowChart::Bar bar;
  const auto* value = numbers.statistics(row.parameter);
  const auto* gradient = row.gradient ? numbers.statistics(row.gradient) : nullptr;
  bar.hasGradient = row.gradient.valid();
  bar.isKnown = value && (gradient || !bar.hasGradient);
  if (value) bar.value = value->norm;
  if (gradient) bar.gradient = gradient->norm;
  return {std::move(bar), gradient ? gradient->nan + gradient->inf : 0};
}

/// Adds a module or a parameter with all that is below it.
void add(GradientFlowModel::Rows& rows, const ParameterTree& tree, const Computation& computation,
         const std::vector<ValueId>& gradients, int parent) {
  GradientFlowModel::Row added;
  added.label = toQt(tree.label);
  added.path = added.numbers.name = toQt(tree.path);
  added.isLayer = tree.isMember || !tree.holdsMembers();
  if (tree.input) {
    added.parameter = computation.inputs[*tree.input].value;
    added.gradient = gradients[*tree.input];
  }
  const int row = rows.add(parent, std::move(added));
  for (const auto& part : tree.parts) add(rows, part, computation, gradients, row);
}

}  // namespace

GradientFlowModel::Rows GradientFlowModel::rowsOf(const Analysis& analysis) {
  Rows rows;
  const auto gradients = gradientsOfInputs(analysis);
  for (const auto& part : parameterTree(analysis.computation()).parts)
    add(rows, part, analysis.computation(), gradients, -1);
  return rows;
}

void GradientFlowModel::show(std::shared_ptr<const Analysis> analysis, Rows rows) {
  beginResetModel();
  analysis_ = std::move(analysis);
  rows_ = std::move(rows);
  endResetModel();
}

void GradientFlowModel::setOpen(int row, bool isOpen) {
  auto& changed = rows_.all[row];
  changed.isOpen = isOpen;
  changed.wasOpened = changed.wasOpened || isOpen;
}

void GradientFlowModel::measure(const RunNumbers& numbers) {
  for (auto row = rows_.all.rbegin(); row != rows_.all.rend(); ++row) {
    GradientFlowChart::Bar bar;
    row->bad = 0;
    if (row->parameter) {
      std::tie(bar, row->bad) = measured(*row, numbers);
    } else {
      bar.isKnown = true;
      bar.hasGradient = false;
      for (const auto part : row->parts) {
        const auto& of = rows_.all[static_cast<std::size_t>(part)];
        bar.isKnown = bar.isKnown && of.numbers.isKnown;
        bar.hasGradient = bar.hasGradient || of.numbers.hasGradient;
        bar.value = std::hypot(bar.value, of.numbers.value);
        bar.gradient = std::hypot(bar.gradient, of.numbers.gradient);
        row->bad += of.bad;
      }
    }
    bar.name = std::move(row->numbers.name);
    row->numbers = std::move(bar);
  }
  announce();
}

void GradientFlowModel::setUpdates(const std::map<std::string, UpdateNumbers>& updates) {
  for (auto row = rows_.all.rbegin(); row != rows_.all.rend(); ++row) {
    row->updated = {};
    if (row->parameter) {
      const auto found = updates.find(row->path.toStdString());
      if (found != updates.end()) row->updated = found->second;
      continue;
    }
    double weight = 0;
    for (const auto part : row->parts) {
      const auto& of = rows_.all[static_cast<std::size_t>(part)];
      if (!of.updated.norm) continue;
      row->updated.norm = std::hypot(row->updated.norm.value_or(0), *of.updated.norm);
      if (of.updated.ratio.value_or(0) > 0) weight = std::hypot(weight, *of.updated.norm / *of.updated.ratio);
    }
    if (weight > 0) row->updated.ratio = *row->updated.norm / weight;
  }
  announce();
}

void GradientFlowModel::announce() {
  const auto changed = [this](const std::vector<int>& parts) {
    if (!parts.empty())
      Q_EMIT dataChanged(createIndex(0, value, parts.front()),
                         createIndex(static_cast<int>(parts.size()) - 1, change, parts.back()));
  };
  changed(rows_.root.parts);
  // A view looks for each row that is announced: those in 30,000 closed layers would take it seconds.
  for (const auto& row : rows_.all)
    if (row.wasOpened) changed(row.parts);
}

std::optional<double> GradientFlowModel::updateNumber(const Row& row, int column) {
  return column == clip ? row.updated.clipFactor : column == update ? row.updated.norm : row.updated.ratio;
}

QString GradientFlowModel::textOf(const Row& row, int column) const {
  const auto& bar = row.numbers;
  const bool isMeasured = bar.isKnown && bar.hasGradient;
  switch (column) {
    case name: return row.label;
    case value: return bar.isKnown ? numberText(bar.value) : QString();
    case gradient: return isMeasured ? numberText(bar.gradient) : bar.hasGradient ? QString() : tr("none");
    case ratio: return isMeasured ? numberText(bar.ratio()) : QString();
    case clip:
    case update:
    case change: {
      const auto number = updateNumber(row, column);
      return number ? numberText(*number) : QString();
    }
    default: return isMeasured ? numberText(OpFigure::bad, static_cast<double>(row.bad)) : QString();
  }
}

QVariant GradientFlowModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& row = rows_.all[rowOf(index)];
  switch (role) {
    case Qt::DisplayRole: return textOf(row, index.column());
    case Qt::ToolTipRole: return index.column() == name ? QVariant(row.path) : QVariant();
    case Qt::TextAlignmentRole:
      return index.column() == name ? QVariant() : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case opRole: return row.gradient ? analysis_->document->value(row.gradient).producer.index : -1;
    case sortRole: {
      if (index.column() == name) return {};
      if (index.column() >= clip) return updateNumber(row, index.column()).value_or(qQNaN());
      const auto& bar = row.numbers;
      if (!bar.isKnown || (index.column() != value && !bar.hasGradient)) return qQNaN();
      const std::array<double, clip> numbers{0, bar.value, bar.gradient, bar.ratio(), static_cast<double>(row.bad)};
      return numbers[index.column()];
    }
    default: return {};
  }
}

QVariant GradientFlowModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static const std::array<const char*, columns> names{"Parameter",   "Value",      "Gradient", "Ratio",
                                                      "NaN and Inf", "Clipped by", "Update",   "Update / Value"};
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section < 0 || section >= columns) return {};
  return tr(names[section]);
}

}  // namespace retrograd::views
