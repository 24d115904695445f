#include "views/models/stage_check_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/derivation/gradient_of.h"
#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

using Of = StageCheckRow::Of;

}  // namespace

void StageCheckModel::clear() {
  beginResetModel();
  document_.reset();
  check_ = {};
  targets_.clear();
  endResetModel();
}

void StageCheckModel::show(std::shared_ptr<const OpenDocument> document, StageCheck check) {
  beginResetModel();
  document_ = std::move(document);
  check_ = std::move(check);
  std::stable_sort(check_.rows.begin(), check_.rows.end(),
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

int StageCheckModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(check_.rows.size());
}
int StageCheckModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : columns; }

QString StageCheckModel::verdictText(const StageCheckRow& row) const {
  switch (row.verdict) {
    case StageVerdict::equal: return tr("\u2713 equal, bit for bit");
    case StageVerdict::close: return tr("\u2713 equal, within the tolerance");
    default:
      return row.reason.empty() ? tr("\u2717 DIFFERS")
                                : tr("\u2717 DIFFERS: %1").arg(QString::fromStdString(row.reason));
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
    case Qt::TextAlignmentRole:
      return QVariant::fromValue(Qt::AlignVCenter | (index.column() >= difference ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::ToolTipRole:
      if (index.column() != verdict || row.verdict == StageVerdict::equal) return {};
      return tr("The tensor's tolerance is %1.").arg(numberText(row.tolerance));
    case Qt::DisplayRole: break;
    default: return {};
  }
  switch (index.column()) {
    case name:
      return row.of == Of::output ? tr("output %1").arg(QString::fromStdString(row.name))
                                  : QString::fromStdString(row.name);
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
  if (orientation != Qt::Horizontal || section < 0 || section >= columns) return {};
  static const std::array<const char*, columns> names{"Tensor", "What", "Verdict", "Difference", "Relative"};
  static const std::array<const char*, columns> tips{
      "Parameter, input or output", "What of it is compared", "Results of the stages and of the whole model",
      "Largest difference of an element", "That, over the largest element of the tensor in the whole model"};
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(Qt::AlignVCenter | (section >= difference ? Qt::AlignRight : Qt::AlignLeft));
  if (role == Qt::DisplayRole) return tr(names[section]);
  if (role == Qt::ToolTipRole) return tr(tips[section]);
  return {};
}

}  // namespace retrograd::views
