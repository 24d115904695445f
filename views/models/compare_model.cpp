#include "views/models/compare_model.h"

#include <array>

#include "views/models/tree_model.h"
#include "views/session/own_names.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {

void CompareModel::show(std::shared_ptr<const OpenDocument> document, std::shared_ptr<const RunComparison> comparison) {
  beginResetModel();
  document_ = std::move(document);
  comparison_ = document_ ? std::move(comparison) : nullptr;
  endResetModel();
}

int CompareModel::firstDivergence() const {
  return comparison_ && comparison_->firstDivergence ? static_cast<int>(*comparison_->firstDivergence) : -1;
}
void CompareModel::followNotes(const NoteBook* notes) {
  notes_ = notes;
  connect(notes, &NoteBook::changed, this, [this] {
    if (rowCount() > 0) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columns - 1));
  });
}

int CompareModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !comparison_ ? 0 : static_cast<int>(comparison_->rows.size());
}
int CompareModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : columns; }

QVariant CompareModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& row = comparison_->rows[index.row()];
  const auto& document = *document_->analysis->document;
  if (role == opRole) return row.opA.index;
  if (role == valueRole) return row.valueA.index;
  if (role == sortRole) {
    switch (index.column()) {
      case relative: return row.relative;
      case largest: return row.largest;
      case normA: return row.normA;
      case normB: return row.normB;
      default: return {};
    }
  }
  if (role == Qt::TextAlignmentRole) {
    const bool isText = index.column() == value || index.column() == op;
    return QVariant(Qt::AlignVCenter | (isText ? Qt::AlignLeft : Qt::AlignRight));
  }
  if (role == Qt::ToolTipRole && !row.note.empty()) return QString::fromStdString(row.note);
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case value:
      return (index.row() == firstDivergence() ? QStringLiteral("\u25c6 ") : QString()) +
             nameOf(document, row.valueA, notes_);
    case relative: return numberText(row.relative);
    case largest: return numberText(row.largest);
    case normA: return numberText(row.normA);
    case normB: return numberText(row.normB);
    default:
      return callOf(document, row.opA, notes_) +
             (row.note.empty() ? QString() : QStringLiteral("   ! ") + QString::fromStdString(row.note));
  }
}

QVariant CompareModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  const std::array titles{tr("Value"), tr("Relative"), tr("Largest"), tr("Norm here"), tr("Norm there"), tr("Op")};
  const std::array tips{tr("\u25c6: the first value where the runs diverge"),
                        tr("Largest difference, relative to the largest element of either"),
                        tr("Largest difference of two elements"),
                        tr("2-norm in the run of what is open"),
                        tr("2-norm in the other run"),
                        tr("The op that makes the value")};
  if (section < 0 || section >= columns) return {};
  if (role == Qt::DisplayRole) return titles[section];
  if (role == Qt::ToolTipRole) return tips[section];
  return {};
}

}  // namespace retrograd::views
