#pragma once
#include <QAbstractTableModel>

#include "views/findings/finding_board.h"

namespace retrograd::views {

/// All findings of a document, a row each: how severe, what, its line of Python, its numbers, and what to do next.
class FindingsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { severity, what, line, numbers, action, columns };

  using QAbstractTableModel::QAbstractTableModel;

  /// `titleOf`: how a command of a finding reads.
  void show(std::vector<FindingBoard::Entry> entries, const std::shared_ptr<const OpenDocument>& document,
            const std::function<QString(const Finding&)>& titleOf);
  const Finding& finding(int row) const { return rows_[row].finding; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : columns; }
  /// opRole, valueRole: where the finding is.
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    Finding finding;
    QString line, action;
  };
  std::vector<Row> rows_;
};

}  // namespace retrograd::views
