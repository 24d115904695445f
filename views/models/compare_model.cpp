#include "views/models/compare_model.h"

#include <array>

#include "views/models/tree_model.h"
#include "views/session/own_names.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, CompareModel::columns> compareColumns{
    {{"Value", "\u25c6: the first value where the runs diverge"},
     {"Relative", "Largest difference, relative to the largest element of either", true},
     {"Largest", "Largest difference of two elements", true},
     {"Norm here", "2-norm in the run of what is open", true},
     {"Norm there", "2-norm in the other run", true},
     {"Op", "The op that makes the value"}}};

}  // namespace

CompareModel::CompareModel(QObject* parent) : TableModel(compareColumns, parent) {}

void CompareModel::show(std::shared_ptr<const OpenDocument> document, std::shared_ptr<const RunComparison> comparison) {
  reset([&] {
    document_ = std::move(document);
    comparison_ = document_ ? std::move(comparison) : nullptr;
  });
}

int CompareModel::firstDivergence() const {
  return comparison_ && comparison_->firstDivergence ? static_cast<int>(*comparison_->firstDivergence) : -1;
}

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
  if (role == Qt::TextAlignmentRole) return alignmentOf(index.column());
  if (role == Qt::ToolTipRole && !row.note.empty()) return toQt(row.note);
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
             (row.note.empty() ? QString() : QStringLiteral("   ! ") + toQt(row.note));
  }
}

}  // namespace retrograd::views
