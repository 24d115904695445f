#include "views/models/table_model.h"

#include <utility>

#include "views/session/note_book.h"
#include "views/text/format.h"

namespace retrograd::views {

QVariant headerOf(std::span<const TableColumn> columns, int section, Qt::Orientation orientation, int role) {
  if (orientation != Qt::Horizontal || section < 0 || std::cmp_greater_equal(section, columns.size())) return {};
  const auto& column = columns[section];
  if (role == Qt::DisplayRole) return tr(column.title);
  return role == Qt::ToolTipRole && column.tip ? tr(column.tip) : QVariant();
}

QVariant TableModel::alignmentOf(int column) const {
  return QVariant(Qt::AlignVCenter | (columns_[column].isNumber ? Qt::AlignRight : Qt::AlignLeft));
}

void TableModel::followNotes(const NoteBook* notes) {
  notes_ = notes;
  connect(notes, &NoteBook::changed, this, &TableModel::refreshRows);
}

void TableModel::refreshRows() {
  if (rowCount() > 0) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

}  // namespace retrograd::views
