#include "views/models/inputs_model.h"

#include <algorithm>
#include <array>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, InputsModel::columns> inputColumns{
    {{"Input"}, {"dtype"}, {"Shape"}, {"Now from"}, {"Gradient"}}};

}  // namespace

InputsModel::InputsModel(const OpenDocument& document, QObject* parent) : TableModel(inputColumns, parent) {
  const auto& analysis = *document.analysis;
  const auto& tables = *analysis.document;
  for (const auto& spec : analysis.computation().inputs) {
    if (spec.kind != InputKind::user) continue;
    Row row;
    row.name = toQt(spec.name);
    row.dtype = tr("number");
    if (spec.value && tables.isTensor(spec.value)) {
      const auto& meta = tables.meta(spec.value);
      row.dtype = toQt(torchName(meta.dtype));
      row.shape = shapeText(meta);
      row.differentiable = isDifferentiable(meta.dtype);
    }
    const auto& chosen = document.request.gradInputs;
    row.checked = row.differentiable && (!chosen || std::ranges::find(*chosen, spec.name) != chosen->end());
    for (const auto& text : analysis.inputSource)
      if (text.starts_with(spec.name + ": ")) row.source = toQt(text.substr(spec.name.size() + 2));
    rows_.push_back(row);
  }
}

std::optional<std::vector<std::string>> InputsModel::gradInputs() const {
  if (std::ranges::all_of(rows_, [](const Row& row) { return row.checked == row.differentiable; })) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& row : rows_)
    if (row.checked) names.push_back(row.name.toStdString());
  return names;
}

QVariant InputsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& row = rows_[index.row()];
  if (index.column() == gradient) {
    if (role == Qt::CheckStateRole) return row.checked ? Qt::Checked : Qt::Unchecked;
    if (role == Qt::ToolTipRole)
      return row.differentiable ? tr("Checked: the backward gives its gradient")
                                : tr("Only floating and complex tensors have gradients");
    return {};
  }
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  switch (index.column()) {
    case inputName: return row.name;
    case dtype: return row.dtype;
    case shape: return row.shape;
    default: return row.source;
  }
}

bool InputsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || index.column() != gradient || role != Qt::CheckStateRole) return false;
  auto& row = rows_[index.row()];
  if (!row.differentiable) return false;
  row.checked = value.toInt() == Qt::Checked;
  Q_EMIT dataChanged(index, index, {Qt::CheckStateRole});
  return true;
}

Qt::ItemFlags InputsModel::flags(const QModelIndex& index) const {
  auto flags = TableModel::flags(index);
  if (index.isValid() && index.column() == gradient) {
    flags |= Qt::ItemIsUserCheckable;
    if (!rows_[index.row()].differentiable) flags &= ~Qt::ItemIsEnabled;
  }
  return flags;
}

}  // namespace retrograd::views
