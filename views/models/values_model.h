#pragma once
#include <memory>

#include "views/models/table_model.h"
#include "views/session/note_book.h"

namespace retrograd::views {

/// Operands and outputs of the selected op with state and statistics, one a row.
class ValuesModel : public TableModel {
  Q_OBJECT

 public:
  /// bool, in the column of states: the value is here now (true), or it is shown as it was at the op (false). Invalid
  /// where words say the state.
  static constexpr int markRole = Qt::UserRole + 40;
  enum Column { label, valueName, type, state, least, greatest, mean, deviation, norm, nan, inf, zeros, columns };

  explicit ValuesModel(QObject* parent = nullptr);

  /// Rows of the op without states, to show before the worker has answered.
  void expect(std::shared_ptr<const OpenDocument> document, BoundSymbolId op);
  /// The same for values chosen one by one.
  void expectRows(std::shared_ptr<const OpenDocument> document, std::vector<ValueRow> rows);
  void setReport(const std::shared_ptr<const ValueReport>& report);
  /// There is no answer: each row says why.
  void setFailure(const QString& reason);
  ValueId valueAt(int row) const { return row >= 0 && row < rowCount() ? rows_[row].value : ValueId(); }
  std::vector<ValueId> values() const;
  bool isOutput(int row) const { return rows_[row].output; }
  bool isAfter(int row) const { return rows_[row].after; }
  int rowOf(ValueId value) const;  ///< -1 when it is not here

  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::size_t rows() const override { return rows_.size(); }
  QString text(const ValueRow& row, int column, bool isShort) const;
  /// In as few characters as distinguish values, or as it shows elsewhere.
  static QString number(const ValueRow& row, int column, bool isShort);
  static QVariant sortNumber(const ValueRow& row, int column);

  std::shared_ptr<const OpenDocument> document_;
  std::vector<ValueRow> rows_;
  bool answered_ = false;
};

}  // namespace retrograd::views
