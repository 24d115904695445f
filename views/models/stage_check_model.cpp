#include "views/models/stage_check_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/derivation/gradient_of.h"
#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, StageCheckModel::columns> checkColumns{
    {{"Tensor", "Parameter, input or output"},
     {"What", "What of it is compared"},
     {"Verdict", "Results of the stages and of the whole model"},
     {"Difference", "Largest difference of an element", true},
     {"Relative", "That, over the largest element of the tensor in the whole model", true}}};

using Of = StageCheckRow::Of;

}  // namespace

StageCheckModel::StageCheckModel(QObject* parent) : TableModel(checkColumns, parent) {}

void StageCheckModel::show(std::shared_ptr<const OpenDocument> document, StageCheck check) {
  beginResetModel();
  document_ = std::move(document);
  check_ = std::move(check);
  std::ranges::stable_sort(check_.rows,
                           [](const StageCheckRow& a, const StageCheckRow& b) { return a.verdict > b.verdict; });
  targets_.clear();
  for (const auto& row : check_.rows) targets_.push_back(target(row));
  endResetModel();
}

ValueId StageCheckModel::target(const StageCheckRow& row) const {
  if (!row.value) return {};
  const bool gradient = row.of == Of::parameter || row.of == Of::input;
  return gradient ? gradientOf(*document_->analysis, row.value) : row.value;
}

QString StageCheckModel::verdictText(const StageCheckRow& row) const {
  switch (row.verdict) {
    case StageVerdict::equal: return tr("\u2713 equal, bit for bit");
    case StageVerdict::close: return tr("\u2713 equal, within the tolerance");
    default: return row.reason.empty() ? tr("\u2717 DIFFERS") : tr("\u2717 DIFFERS: %1").arg(toQt(row.reason));
  }
}

QVariant StageCheckModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& row = check_.rows[index.row()];
  const auto target = targets_[index.row()];
  const auto figure = [](double number) {
    return number == 0          ? QStringLiteral("0")
           : std::isinf(number) ? QStringLiteral("\u2013")
                                : QString::number(number, 'e', 2);
  };
  switch (role) {
    case opRole:
      return target ? QVariant(static_cast<int>(document_->analysis->document->value(target).producer.index))
                    : QVariant();
    case valueRole: return target ? QVariant(static_cast<int>(target.index)) : QVariant();
    case sortRole:
      return index.column() < difference    ? QVariant()
             : index.column() == difference ? QVariant(row.difference)
                                            : QVariant(row.relative);
    case Qt::TextAlignmentRole: return alignmentOf(index.column());
    case Qt::ToolTipRole:
      if (index.column() != verdict || row.verdict == StageVerdict::equal) return {};
      return tr("The tensor's tolerance is %1.").arg(numberText(row.tolerance));
    case Qt::DisplayRole: break;
    default: return {};
  }
  switch (index.column()) {
    case name: return row.of == Of::output ? tr("output %1").arg(toQt(row.name)) : toQt(row.name);
    case what:
      if (row.of == Of::parameter) return tr("parameter gradient");
      if (row.of == Of::input) return tr("input gradient");
      return row.of == Of::output ? tr("output") : tr("what is left in it");
    case verdict: return verdictText(row);
    case difference: return figure(row.difference);
    default: return figure(row.relative);
  }
}

QVariant StageCheckModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::TextAlignmentRole && orientation == Qt::Horizontal && section >= 0 && section < columns)
    return alignmentOf(section);
  return TableModel::headerData(section, orientation, role);
}

}  // namespace retrograd::views
