#pragma once
#include <QAbstractTableModel>
#include <memory>

#include "views/session/note_book.h"

namespace retrograd::views {

/// Operands and outputs of the selected op with state and statistics, one a row.
class ValuesModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  /// bool, in the column of states: the value is here now (true), or it is shown as it was at the op (false). Invalid
  /// where words say the state.
  static constexpr int markRole = Qt::UserRole + 40;
  enum Column { label, valueName, type, state, least, greatest, mean, deviation, norm, nan, inf, zeros, columns };

  using QAbstractTableModel::QAbstractTableModel;

  /// Rows of the op without states, to show before the worker has answered.
  void expect(std::shared_ptr<const OpenDocument> document, BoundSymbolId op);
  /// The same for values chosen one by one.
  void expectRows(std::shared_ptr<const OpenDocument> document, std::vector<ValueRow> rows);
  void setReport(const std::shared_ptr<const ValueReport>& report);
  /// There is no answer: each row says why.
  void setFailure(const QString& reason);
  /// Calls values as the notes do, now and whenever they change.
  void followNotes(const NoteBook* notes);
  ValueId valueAt(int row) const;
  std::vector<ValueId> values() const;
  bool isOutput(int row) const { return rows_[row].output; }
  bool isAfter(int row) const { return rows_[row].after; }
  int rowOf(ValueId value) const;  ///< -1 when it is not here

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QString text(const ValueRow& row, int column, bool isShort) const;
  /// In as few characters as distinguish values, or as it shows elsewhere.
  static QString number(const ValueRow& row, int column, bool isShort);
  static QVariant sortNumber(const ValueRow& row, int column);

  std::shared_ptr<const OpenDocument> document_;
  const NoteBook* notes_ = nullptr;
  std::vector<ValueRow> rows_;
  bool answered_ = false;
};

}  // namespace retrograd::views
