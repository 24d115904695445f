#pragma once
#include <QAbstractTableModel>
#include <span>

namespace retrograd::views {

class NoteBook;

/// A column of a table.
struct TableColumn {
  const char* title;
  const char* tip = nullptr;  ///< of its title
  bool isNumber = false;      ///< its cells are aligned at the right
};

/// What QAbstractItemModel::headerData() answers for these columns.
QVariant headerOf(std::span<const TableColumn> columns, int section, Qt::Orientation orientation, int role);

/// A table whose rows hold no others. A model says how many rows there are, and what is in a cell.
class TableModel : public QAbstractTableModel {
 public:
  /// `columns` stay as long as the program runs.
  TableModel(std::span<const TableColumn> columns, QObject* parent) : QAbstractTableModel(parent), columns_(columns) {}
  int rowCount(const QModelIndex& parent = {}) const final { return parent.isValid() ? 0 : static_cast<int>(rows()); }
  int columnCount(const QModelIndex& parent = {}) const final {
    return parent.isValid() ? 0 : static_cast<int>(columns_.size());
  }
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override {
    return headerOf(columns_, section, orientation, role);
  }
  /// Calls values as the notes do, now and whenever they change.
  void followNotes(const NoteBook* notes);

 protected:
  virtual std::size_t rows() const = 0;
  QVariant alignmentOf(int column) const;
  /// Shows what `change` makes of the model instead of what is there.
  template <class Change>
  void reset(Change change) {
    beginResetModel();
    change();
    endResetModel();
  }
  /// The same rows say something else: what a view has chosen, and where it is scrolled to, stays.
  void refreshRows();

  const NoteBook* notes_ = nullptr;

 private:
  std::span<const TableColumn> columns_;
};

}  // namespace retrograd::views
